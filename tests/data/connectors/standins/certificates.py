"""A certificate authority of our own, made anew for every test session, for servers on the loopback."""

import datetime
import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest

HOSTS = tuple(
    (
        "*.yahoo.com *.finance.yahoo.com api.binance.com api.kraken.com www.bitstamp.net *.eastmoney.com localhost"
    ).split()
)


@dataclass(frozen=True)
class Authority:
    bundle: Path
    server: ssl.SSLContext


def make_authority(folder: Path) -> Authority:
    x509 = pytest.importorskip("cryptography.x509", reason="certificates for the stand-ins need cryptography")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    # Validity is wide enough to hold for any clock a machine may show.
    begin, end = datetime.datetime(2000, 1, 1), datetime.datetime(2099, 1, 1)  # noqa: DTZ001 (naive by the API)

    def named(text: str):
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    def certificate(subject: str, public_key, issuer: str, issuer_key, extensions):
        builder = (
            x509.CertificateBuilder()
            .subject_name(named(subject))
            .issuer_name(named(issuer))
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(end)
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical=critical)
        return builder.sign(issuer_key, hashes.SHA256())

    root_key, leaf_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = certificate(
        "stand-in root",
        root_key.public_key(),
        "stand-in root",
        root_key,
        [
            (x509.BasicConstraints(ca=True, path_length=None), True),
            (x509.SubjectKeyIdentifier.from_public_key(root_key.public_key()), False),
            (x509.KeyUsage(False, False, False, False, False, True, True, False, False), True),
        ],
    )
    leaf = certificate(
        "stand-in",
        leaf_key.public_key(),
        "stand-in root",
        root_key,
        [
            (x509.SubjectAlternativeName([x509.DNSName(host) for host in HOSTS]), False),
            (x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key()), False),
            (x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH]), False),
        ],
    )
    pem = serialization.Encoding.PEM
    bundle, own = folder / "root.pem", folder / "leaf.pem"
    bundle.write_bytes(root.public_bytes(pem))
    own.write_bytes(
        leaf_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + leaf.public_bytes(pem)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own)
    return Authority(bundle, context)
