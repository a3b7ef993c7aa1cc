import type { Readiness } from '../lifecycle/readiness.ts';

/** What the health thread is started with. Plain data: it crosses a thread boundary. */
export interface HealthThreadData {
  readonly heartbeat: SharedArrayBuffer;
  /** Null: no listener, only the file. */
  readonly listen: { readonly host: string; readonly port: number } | null;
  readonly healthFile: string | null;
  readonly staleMs: number;
  /** How often the heartbeat is looked at, ms. */
  readonly lookMs: number;
  /** Longest a scrape waits for the reactor's thread to render, ms. */
  readonly renderDeadlineMs: number;
  /** How often the health file is written, ms. */
  readonly fileMs: number;
}

/** Supervisor → health thread. */
export type ToHealthThread =
  | { readonly type: 'readiness'; readonly readiness: Readiness }
  | { readonly type: 'rendered'; readonly text: string }
  | { readonly type: 'close'; readonly budgetMs: number };

/** Health thread → supervisor. */
export type FromHealthThread =
  | { readonly type: 'listening'; readonly url: string | null }
  | { readonly type: 'listen.failed'; readonly code: string; readonly message: string }
  | { readonly type: 'render' }
  /** The reactor was blocked past the limit and has come back. */
  | { readonly type: 'stall.ended'; readonly stallMs: number }
  | { readonly type: 'file.failed'; readonly message: string };
