// Documents to try expressions on, for a broker without any.
export const SAMPLES = [
  {
    name: "A news story",
    xpath: "//story[@section = 'weather']//p[contains(., 'rain')]",
    text: `<?xml version="1.0" encoding="UTF-8"?>
<news date="2026-03-14">
  <story id="s-101" section="weather" lang="en">
    <headline>Rain over the hills</headline>
    <byline>By <person>Ada Moor</person></byline>
    <body>
      <p>It will rain from noon on, first in the <place>west</place>.</p>
      <p>The wind turns north in the evening.</p>
    </body>
    <keywords><keyword>rain</keyword><keyword>forecast</keyword></keywords>
  </story>
  <story id="s-102" section="markets" lang="en">
    <headline>Grain futures fall</headline>
    <body>
      <p>Prices fell by <change unit="percent">2.4</change> after the forecast.</p>
    </body>
  </story>
</news>
`,
  },
  {
    name: "An order",
    xpath: "/order[customer/@vip = 'yes']/items/item[price > 100]",
    text: `<?xml version="1.0"?>
<order number="20417" currency="EUR">
  <customer vip="yes">
    <name>Harbour Books</name>
    <country>NL</country>
  </customer>
  <items>
    <item sku="L-7"><title>Desk lamp</title><quantity>2</quantity><price>39.90</price></item>
    <item sku="C-3"><title>Chair</title><quantity>4</quantity><price>189.00</price></item>
    <item sku="S-1"><title>Shelf</title><quantity>1</quantity><price>245.50</price></item>
  </items>
</order>
`,
  },
  {
    name: "Readings of sensors",
    xpath: "//reading[@quality = 'good' and value > 21]/value",
    text: `<?xml version="1.0"?>
<station id="north-4" xmlns="">
  <reading at="09:00" quality="good"><sensor>t1</sensor><value unit="C">20.4</value></reading>
  <reading at="09:10" quality="good"><sensor>t1</sensor><value unit="C">21.7</value></reading>
  <reading at="09:20" quality="poor"><sensor>t1</sensor><value unit="C">35.0</value></reading>
  <reading at="09:30" quality="good"><sensor>t2</sensor><value unit="C">22.1</value></reading>
</station>
`,
  },
];
