import { type FileHandle, mkdir, open, unlink } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { berthError } from '#domain/errors.js';
import { type Result, err, ok } from '#domain/result.js';
import { NO_SLOT } from '#runtime/slot-list.js';
import type { Alarm } from './alarms.js';
import { MAX_BODY_BYTES, refusedUnread, STALLS, stalled, tooLarge } from './body.js';
import { boundaryOf, type FormPart, formParts } from './multipart.js';

/** Undefined: the client left before it had sent everything. */
export type Uploaded = Result<Upload> | undefined;

/** Fields of a form that this side reads. */
interface FormFields {
  readonly model: string;
  readonly modelAt: FormPart;
}

/**
 * A form as it came, on disk while its call waits. Its file has no name any more from the moment that it is open: it is
 * gone when the call ends, and when this process does, however either ends.
 */
export class Upload {
  readonly fields: FormFields;
  readonly #file: FileHandle;
  readonly #bytes: number;

  private constructor(file: FileHandle, bytes: number, fields: FormFields) {
    this.#file = file;
    this.#bytes = bytes;
    this.fields = fields;
  }

  /** Takes the file over: it is closed when the form is refused. */
  static async of(file: FileHandle, size: number, boundary: string): Promise<Result<Upload>> {
    const bytes = await readWhole(file, size);
    const fields = fieldsOf(bytes, boundary);
    if (fields.ok) return ok(new Upload(file, size, fields.value));
    await file.close();
    return fields;
  }

  /** The form as an engine gets it: as it came, but for the model's name. */
  async forEngine(model: string): Promise<Buffer> {
    const bytes = await readWhole(this.#file, this.#bytes);
    if (model === this.fields.model) return bytes;
    const { valueStart, valueEnd } = this.fields.modelAt;
    return Buffer.concat([bytes.subarray(0, valueStart), Buffer.from(model), bytes.subarray(valueEnd)]);
  }

  /** A second time does nothing. */
  async remove(): Promise<void> {
    await this.#file.close();
  }
}

async function readWhole(file: FileHandle, size: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(size);
  let filled = 0;
  while (filled < size) {
    const { bytesRead } = await file.read(bytes, filled, size - filled, filled);
    if (bytesRead === 0) throw new Error(`An upload of ${size} bytes ended after ${filled}.`);
    filled += bytesRead;
  }
  return bytes;
}

function fieldsOf(bytes: Buffer, boundary: string): Result<FormFields> {
  const parts = formParts(bytes, boundary);
  if (!parts.ok) return parts;
  const named = (name: string) => parts.value.filter((part) => part.name === name);
  const textOf = ({ valueStart, valueEnd }: FormPart) => bytes.toString('utf8', valueStart, valueEnd);
  const [modelAt, second] = named('model');
  const bad = (message: string, param: string) => err(berthError('invalid_request', message, { param }));
  if (!modelAt)
    return bad('The form has no "model". GET /v1/models lists the names that can be called.', 'model');
  if (second)
    return bad(
      'The form has "model" more than once. Send it once, so that it is clear what is meant.',
      'model',
    );
  const [stream] = named('stream');
  if (stream && textOf(stream) === 'true')
    return bad('A transcription is not streamed here: leave "stream" out.', 'stream');
  return ok({ model: textOf(modelAt), modelAt });
}

/** Spools the form of a request into `folder`, and says so once. */
export function receiveUpload(
  req: IncomingMessage,
  folder: string,
  id: string,
  done: (uploaded: Uploaded) => void,
): void {
  const boundary = boundaryOf(req.headers['content-type']);
  const refusal = refusedUnread(req) ?? (boundary.ok ? undefined : boundary.error);
  if (refusal || !boundary.ok) {
    done(refusal && err(refusal));
    return;
  }
  const spool = new UploadSpool(req, done);
  openUnnamed(folder, id).then(
    (file) => spool.start(file, boundary.value),
    (error: unknown) => spool.broken(error),
  );
}

async function openUnnamed(folder: string, id: string): Promise<FileHandle> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, id);
  const file = await open(path, 'wx+', 0o600);
  await unlink(path);
  return file;
}

class UploadSpool implements Alarm {
  slot = NO_SLOT;
  dueAtMs = 0;
  readonly #req: IncomingMessage;
  readonly #done: (uploaded: Uploaded) => void;
  #file: FileHandle | undefined;
  #bytes = 0;
  #over = false;

  constructor(req: IncomingMessage, done: (uploaded: Uploaded) => void) {
    this.#req = req;
    this.#done = done;
    // Before its file is open, too: whoever leaves then is not waited for.
    req.on('error', () => this.#settle(undefined));
    req.on('close', () => {
      if (!req.complete) this.#settle(undefined);
    });
  }

  start(file: FileHandle, boundary: string): void {
    this.#file = file;
    if (this.#over) {
      this.#close();
      return;
    }
    this.#progressed();
    STALLS.alarms.set(this);
    this.#req.on('data', (chunk: Buffer) => this.#take(file, chunk));
    this.#req.on('end', () => {
      if (this.#over) return;
      STALLS.alarms.clear(this);
      this.#file = undefined;
      Upload.of(file, this.#bytes, boundary).then(
        (upload) => {
          if (this.#over && upload.ok) void upload.value.remove();
          this.#settle(upload);
        },
        (error: unknown) => this.broken(error),
      );
    });
  }

  ring(): void {
    this.#settle(err(stalled(this.#bytes)));
  }

  broken(error: unknown): void {
    const why = (error as NodeJS.ErrnoException).code ?? 'unknown';
    const message = `The upload could not be kept on the disk of Berth (${why}). Send it again once that has room.`;
    this.#settle(err(berthError('internal', message)));
  }

  /** One piece after the other: what the disk has not taken is not read. */
  #take(file: FileHandle, chunk: Buffer): void {
    if (this.#over) return;
    const at = this.#bytes;
    this.#bytes += chunk.length;
    this.#progressed();
    if (this.#bytes > MAX_BODY_BYTES) {
      this.#settle(err(tooLarge(undefined)));
      return;
    }
    this.#req.pause();
    file.write(chunk, 0, chunk.length, at).then(
      () => this.#req.resume(),
      (error: unknown) => {
        this.#req.resume();
        this.broken(error);
      },
    );
  }

  #progressed(): void {
    this.dueAtMs = performance.now() + STALLS.afterMs;
  }

  #settle(uploaded: Uploaded): void {
    if (this.#over) return;
    this.#over = true;
    STALLS.alarms.clear(this);
    this.#close();
    this.#done(uploaded);
  }

  #close(): void {
    const file = this.#file;
    this.#file = undefined;
    // Nothing can be done about a file that does not close, and nobody waits for it.
    file?.close().catch(() => undefined);
  }
}
