import { createHash } from 'node:crypto';
import { AgentdError } from '../../protocol/errors.ts';
import type { InboxDocument } from './document-index.ts';
import {
  type DocumentSlice,
  isText,
  mimeTypeFor,
  readSlice,
  unknownDocument,
  wholeCharacters,
} from './document-read.ts';
import type { InboxFolder } from './inbox-folder.ts';
import type { ResultsStore } from './results-store.ts';

/** Caps of one inbox, bytes. */
export interface InboxLimits {
  /** Largest document `resources/read` returns whole. */
  readonly maxReadBytes: number;
  /** What the read tool returns when no length is asked for, and at most. */
  readonly pageBytes: number;
  readonly maxPageBytes: number;
}

export const INBOX_LIMITS: InboxLimits = {
  maxReadBytes: 8 * 1024 * 1024,
  pageBytes: 256 * 1024,
  maxPageBytes: 1024 * 1024,
};

/** Bytes of UTF-8: a shorter page of text could never move on. */
const LONGEST_CHARACTER = 4;

/** Part of a document, as text where it is text. */
export interface DocumentPage {
  readonly document: InboxDocument;
  readonly slice: DocumentSlice;
  readonly mimeType: string | null;
  readonly encoding: 'utf-8' | 'base64';
  readonly content: string;
  /** Where the next page begins, or null at the end. */
  readonly nextOffset: number | null;
}

/** What the tools and resources of an inbox do, apart from how they are asked for. */
export class Inbox {
  constructor(
    readonly folder: InboxFolder,
    readonly results: ResultsStore,
    private readonly limits: InboxLimits = INBOX_LIMITS,
  ) {}

  /** @throws AgentdError INBOX_UNAVAILABLE */
  page(cursor: string, limit: number): ReturnType<InboxFolder['documents']['page']> {
    this.folder.requireAvailable();
    return this.folder.documents.page(cursor, limit);
  }

  /**
   * A whole document.
   *
   * @throws AgentdError DOCUMENT_UNKNOWN, DOCUMENT_TOO_LARGE, INBOX_UNAVAILABLE
   */
  async readWhole(uri: string): Promise<DocumentPage> {
    const document = this.find(uri);
    const { maxReadBytes } = this.limits;
    // One byte more than allowed, so that a file that grew since the last look is noticed too.
    const slice = await readSlice(this.folder.place, document, 0, maxReadBytes + 1);
    if (slice.bytes.length > maxReadBytes) {
      throw new AgentdError(
        'DOCUMENT_TOO_LARGE',
        `${uri} is ${slice.state.size} bytes, more than the ${maxReadBytes} that are returned whole; ` +
          'call the read tool with offset and length to page through it',
      );
    }
    return describe(document, slice);
  }

  /**
   * Part of a document, cut to whole characters where it is text.
   *
   * @throws AgentdError DOCUMENT_UNKNOWN, INBOX_UNAVAILABLE
   */
  async readPage(uri: string, offset: number, length?: number): Promise<DocumentPage> {
    const document = this.find(uri);
    const { pageBytes, maxPageBytes } = this.limits;
    const wanted = Math.min(Math.max(length ?? pageBytes, LONGEST_CHARACTER), maxPageBytes);
    const slice = await readSlice(this.folder.place, document, offset, wanted);
    return describe(document, slice);
  }

  /**
   * Files a result for a document.
   *
   * @throws AgentdError DOCUMENT_UNKNOWN and what `ResultsStore.file` throws
   */
  async complete(input: {
    readonly uri: string;
    readonly result: unknown;
    readonly key?: string | undefined;
    readonly runId?: string | undefined;
    readonly instance?: string | undefined;
  }): Promise<{ readonly id: string; readonly key: string; readonly replayed: boolean }> {
    if (!this.folder.documents.knows(input.uri) && this.results.countFor(input.uri) === 0) {
      throw unknownDocument(input.uri);
    }
    const key = input.key ?? contentKey(input.uri, input.result);
    const { uri, result, runId, instance } = input;
    const { head, replayed } = await this.results.file({ uri, key, runId, instance, result });
    return { id: head.id, key, replayed };
  }

  private find(uri: string): InboxDocument {
    this.folder.requireAvailable();
    const document = this.folder.documents.find(uri);
    if (document === undefined) throw unknownDocument(uri);
    return document;
  }
}

function describe(document: InboxDocument, slice: DocumentSlice): DocumentPage {
  const whole = wholeCharacters(slice);
  const text = isText(whole.bytes);
  const part = text ? whole : slice;
  const end = part.offset + part.bytes.length;
  return {
    document,
    slice: part,
    mimeType: mimeTypeFor(document, part.bytes),
    encoding: text ? 'utf-8' : 'base64',
    content: part.bytes.toString(text ? 'utf8' : 'base64'),
    nextOffset: end < slice.state.size && part.bytes.length > 0 ? end : null,
  };
}

/** The key of a call that brought none: the same call again is then still the same result. */
function contentKey(uri: string, result: unknown): string {
  const digest = createHash('sha256')
    .update(uri)
    .update('\0')
    .update(JSON.stringify(result) ?? '');
  return `content:${digest.digest('hex')}`;
}
