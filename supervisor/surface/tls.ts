import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** Authorities whose client certificates are accepted. */
  readonly clientCaFile?: string;
}

/** Certificate material as it is on disk now. */
export interface TlsMaterial {
  readonly options: SecureContextOptions;
  /** Whether the server certificate is valid for a host name or address. */
  names(host: string): boolean;
}

/**
 * Reads certificate, key and client authorities, and checks that they belong together.
 *
 * @throws AgentdError TLS_UNUSABLE naming the file
 */
export function loadTls(files: TlsFiles): TlsMaterial {
  const cert = readPem(files.certFile, 'certificate');
  const key = readPem(files.keyFile, 'private key');
  const ca = files.clientCaFile === undefined ? null : readPem(files.clientCaFile, 'client authority');
  const options: SecureContextOptions = {
    cert,
    key,
    minVersion: 'TLSv1.2',
    ...(ca === null ? {} : { ca }),
  };
  let leaf: X509Certificate;
  try {
    createSecureContext(options);
    leaf = new X509Certificate(cert);
  } catch (error) {
    throw new AgentdError(
      'TLS_UNUSABLE',
      `cannot use certificate ${files.certFile} with key ${files.keyFile}: ${errorMessage(error)}`,
      { cause: error },
    );
  }
  return {
    options,
    names: (host) => (isIP(host) === 0 ? leaf.checkHost(host) : leaf.checkIP(host)) !== undefined,
  };
}

function readPem(path: string, what: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new AgentdError('TLS_UNUSABLE', `cannot read the ${what} ${path}: ${errorMessage(error)}`, {
      cause: error,
    });
  }
}

/**
 * Certificate material that follows its files, so that a rotated certificate is in use without a
 * restart. Files are looked at when a connection arrives, at most once per `minIntervalMs`: an
 * idle listener costs nothing. A half-rotated pair keeps the old material and is tried again.
 */
export class TlsKeeper {
  private seen: string;
  private checkedAt = Number.NEGATIVE_INFINITY;
  private current: TlsMaterial;

  /** @throws AgentdError TLS_UNUSABLE */
  constructor(
    private readonly files: TlsFiles,
    private readonly onRejected: (reason: string) => void,
    private readonly minIntervalMs = 1000,
  ) {
    this.seen = this.fingerprint();
    this.current = loadTls(files);
  }

  get material(): TlsMaterial {
    return this.current;
  }

  /** Whether the material changed since the last call; `now` is a monotonic reading, ms. */
  refresh(now: number = performance.now()): boolean {
    if (now - this.checkedAt < this.minIntervalMs) return false;
    this.checkedAt = now;
    const seen = this.fingerprint();
    if (seen === this.seen) return false;
    try {
      this.current = loadTls(this.files);
      this.seen = seen;
      return true;
    } catch (error) {
      this.onRejected(errorMessage(error));
      return false;
    }
  }

  /** Follows symbolic links, as mounted secrets rotate by swapping one. */
  private fingerprint(): string {
    const { certFile, keyFile, clientCaFile } = this.files;
    return [certFile, keyFile, ...(clientCaFile === undefined ? [] : [clientCaFile])]
      .map((path) => {
        const stat = statSync(path, { throwIfNoEntry: false });
        return stat === undefined ? 'absent' : `${stat.ino}:${stat.mtimeMs}:${stat.size}`;
      })
      .join(' ');
  }
}
