import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { webcrypto } from 'node:crypto';
import { isIP } from 'node:net';

const KEYS = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY_MS = 24 * 60 * 60 * 1000;
const CA_DAYS = 3650;
const SERVER_DAYS = 397;

/** A certificate and its private key, both PEM. */
export interface Issued {
  readonly cert: string;
  readonly key: string;
}

/** A new authority that signs itself. */
export async function makeAuthority(nowMs: number): Promise<Issued> {
  const keys = await webcrypto.subtle.generateKey(KEYS, true, ['sign', 'verify']);
  const cert = await x509.X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: serialNumber(),
      name: 'CN=Berth event node authority',
      notBefore: new Date(nowMs - DAY_MS),
      notAfter: new Date(nowMs + CA_DAYS * DAY_MS),
      signingAlgorithm: KEYS,
      keys,
      extensions: [
        new x509.BasicConstraintsExtension(true, 0, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    },
    webcrypto,
  );
  return { cert: cert.toString('pem'), key: await privatePem(keys.privateKey) };
}

/** A server certificate for the names, from the authority. */
export async function issueCertificate(
  authority: Issued,
  names: readonly string[],
  nowMs: number,
): Promise<Issued> {
  const issuer = new x509.X509Certificate(authority.cert);
  const signingKey = await webcrypto.subtle.importKey(
    'pkcs8',
    x509.PemConverter.decodeFirst(authority.key),
    KEYS,
    true,
    ['sign'],
  );
  const keys = await webcrypto.subtle.generateKey(KEYS, true, ['sign', 'verify']);
  const cert = await x509.X509CertificateGenerator.create(
    {
      serialNumber: serialNumber(),
      subject: 'CN=Berth event node',
      issuer: issuer.subject,
      notBefore: new Date(nowMs - DAY_MS),
      notAfter: new Date(nowMs + SERVER_DAYS * DAY_MS),
      signingAlgorithm: KEYS,
      publicKey: keys.publicKey,
      signingKey,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
        new x509.SubjectAlternativeNameExtension(
          names.map((name) => ({ type: isIP(name) ? ('ip' as const) : ('dns' as const), value: name })),
        ),
        await x509.AuthorityKeyIdentifierExtension.create(issuer),
      ],
    },
    webcrypto,
  );
  return { cert: cert.toString('pem'), key: await privatePem(keys.privateKey) };
}

async function privatePem(key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}

/** Positive, 127 random bits. */
function serialNumber(): string {
  const bytes = webcrypto.getRandomValues(Buffer.alloc(16));
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x01;
  return bytes.toString('hex');
}
