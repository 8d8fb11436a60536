import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { Issued } from './make-certificates.js';
import { makePrivateFolder, readIfThere, writePrivateFile } from './private-files.js';

const DAY_MS = 24 * 60 * 60 * 1000;
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
    const { issueCertificate } = await maker();
    ({ cert, key } = await issueCertificate(authority, names, now()));
    writePrivateFile(keyFile, key);
    writePrivateFile(certFile, cert);
  }
  return { caFile, ca: authority.cert, key, cert, expiresAt: new Date(new X509Certificate(cert).validTo) };
}

/** Loaded only when something must be made: the library costs a third of a second at every start. */
const maker = () => import('./make-certificates.js');

async function ensureAuthority(folder: string, now: () => number): Promise<readonly [Issued, boolean]> {
  const caFile = join(folder, 'ca.pem');
  const keyFile = join(folder, 'ca-key.pem');
  const cert = readIfThere(caFile);
  const key = readIfThere(keyFile);
  if (cert && key && isGood(cert, now())) return [{ cert, key }, false];
  const made = await (await maker()).makeAuthority(now());
  writePrivateFile(keyFile, made.key);
  writePrivateFile(caFile, made.cert);
  return [made, true];
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
