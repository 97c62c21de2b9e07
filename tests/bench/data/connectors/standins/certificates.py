"""A certificate of our own, made anew for every test session, for servers on the loopback; its
own issuer.
"""

import datetime
import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest

HOSTS = "*.yahoo.com *.finance.yahoo.com api.binance.com api.kraken.com www.bitstamp.net localhost"


@dataclass(frozen=True)
class Authority:
    bundle: Path
    server: ssl.SSLContext


def make_authority(folder: Path) -> Authority:
    x509 = pytest.importorskip(
        "cryptography.x509", reason="certificates for the stand-ins need cryptography"
    )
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "stand-in")])
    # Validity is wide enough to hold for any clock a machine may show.
    begin, end = datetime.datetime(2000, 1, 1), datetime.datetime(2099, 1, 1)  # noqa: DTZ001 (naive by the API)
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), begin, end
    )
    for extension, critical in (
        (x509.BasicConstraints(ca=True, path_length=None), True),
        (x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False),
        (x509.KeyUsage(True, False, False, False, False, True, True, False, False), True),
        (x509.SubjectAlternativeName([x509.DNSName(host) for host in HOSTS.split()]), False),
        (x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH]), False),
    ):
        builder = builder.add_extension(extension, critical=critical)
    own, pem = builder.sign(key, hashes.SHA256()), serialization.Encoding.PEM
    bundle, chain = folder / "root.pem", folder / "leaf.pem"
    bundle.write_bytes(own.public_bytes(pem))
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    chain.write_bytes(secret + own.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    return Authority(bundle, context)
