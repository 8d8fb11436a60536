import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { webcrypto, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { makePrivateFolder, readIfThere, writePrivateFile } from './private-files.js';

const KEYS = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY_MS = 24 * 60 * 60 * 1000;
const CA_DAYS = 3650;
const SERVER_DAYS = 397;
/** A certificate is made anew when less than this is left of it. */
const RENEW_BEFORE_DAYS = 30;

export interface TlsFiles {
  /** What clients trust, as a path for their connection string. */
  readonly caFile: string;
  readonly ca: string;
  readonly key: string;
  readonly cert: string;
  readonly expiresAt: Date;
}

/**
 * The node's own authority and a server certificate from it, in `DIR/tls`: kept over restarts, renewed in time. The
 * certificate is made anew when it lacks one of the names.
 */
export async function ensureCertificates(
  folder: string,
  host: string,
  now: () => number = Date.now,
): Promise<TlsFiles> {
  makePrivateFolder(folder);
  const names = [...new Set(['127.0.0.1', '::1', 'localhost', host])];
  const [authority, made] = await ensureAuthority(folder, now);
  const certFile = join(folder, 'server.pem');
  const keyFile = join(folder, 'server-key.pem');
  const caFile = join(folder, 'ca.pem');
  let cert = readIfThere(certFile);
  let key = readIfThere(keyFile);
  const usable = !made && cert && key && isGood(cert, now()) && hasNames(cert, names);
  if (!usable || !cert || !key) {
    ({ cert, key } = await issue(authority, names, now()));
    writePrivateFile(keyFile, key);
    writePrivateFile(certFile, cert);
  }
  return { caFile, ca: authority.pem, key, cert, expiresAt: new Date(new X509Certificate(cert).validTo) };
}

interface Authority {
  readonly pem: string;
  readonly cert: x509.X509Certificate;
  readonly key: webcrypto.CryptoKey;
}

async function ensureAuthority(folder: string, now: () => number): Promise<readonly [Authority, boolean]> {
  const caFile = join(folder, 'ca.pem');
  const keyFile = join(folder, 'ca-key.pem');
  const pem = readIfThere(caFile);
  const keyPem = readIfThere(keyFile);
  if (pem && keyPem && isGood(pem, now())) {
    const key = await webcrypto.subtle.importKey('pkcs8', x509.PemConverter.decodeFirst(keyPem), KEYS, true, [
      'sign',
    ]);
    return [{ pem, cert: new x509.X509Certificate(pem), key }, false];
  }
  const keys = await webcrypto.subtle.generateKey(KEYS, true, ['sign', 'verify']);
  const cert = await x509.X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: serialNumber(),
      name: 'CN=Berth event node authority',
      notBefore: new Date(now() - DAY_MS),
      notAfter: new Date(now() + CA_DAYS * DAY_MS),
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
  const made = cert.toString('pem');
  writePrivateFile(keyFile, await privatePem(keys.privateKey));
  writePrivateFile(caFile, made);
  return [{ pem: made, cert, key: keys.privateKey }, true];
}

async function issue(
  authority: Authority,
  names: readonly string[],
  nowMs: number,
): Promise<{ cert: string; key: string }> {
  const keys = await webcrypto.subtle.generateKey(KEYS, true, ['sign', 'verify']);
  const cert = await x509.X509CertificateGenerator.create(
    {
      serialNumber: serialNumber(),
      subject: 'CN=Berth event node',
      issuer: authority.cert.subject,
      notBefore: new Date(nowMs - DAY_MS),
      notAfter: new Date(nowMs + SERVER_DAYS * DAY_MS),
      signingAlgorithm: KEYS,
      publicKey: keys.publicKey,
      signingKey: authority.key,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
        new x509.SubjectAlternativeNameExtension(
          names.map((name) => ({ type: isIP(name) ? ('ip' as const) : ('dns' as const), value: name })),
        ),
        await x509.AuthorityKeyIdentifierExtension.create(authority.cert),
      ],
    },
    webcrypto,
  );
  return { cert: cert.toString('pem'), key: await privatePem(keys.privateKey) };
}

async function privatePem(key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}

function isGood(pem: string, nowMs: number): boolean {
  try {
    const cert = new X509Certificate(pem);
    return (
      Date.parse(cert.validTo) - nowMs > RENEW_BEFORE_DAYS * DAY_MS && Date.parse(cert.validFrom) <= nowMs
    );
  } catch {
    // A file cut short by a full disk is no certificate; a new one takes its place.
    return false;
  }
}

function hasNames(pem: string, names: readonly string[]): boolean {
  const cert = new X509Certificate(pem);
  return names.every((name) => (isIP(name) ? cert.checkIP(name) : cert.checkHost(name)) !== undefined);
}

/** Positive, 127 random bits. */
function serialNumber(): string {
  const bytes = webcrypto.getRandomValues(Buffer.alloc(16));
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x01;
  return bytes.toString('hex');
}
