"""A certificate for this machine, which vouches for itself."""

import subprocess
from pathlib import Path
from typing import NamedTuple


class Certificates(NamedTuple):
    """Files in PEM."""

    certificate: Path
    private_key: Path


def certificates_in(folder: Path) -> Certificates:
    """A new certificate and its private key."""
    made = Certificates(folder / "certificate.pem", folder / "key.pem")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    files = ["-keyout", str(made.private_key), "-out", str(made.certificate)]
    subprocess.run([*command.split(), *names, *files], check=True, capture_output=True)
    return made
