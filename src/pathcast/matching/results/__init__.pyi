from .batch_subscribers import SubscriberRows as SubscriberRows
