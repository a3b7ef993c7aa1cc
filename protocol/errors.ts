/**
 * Every error a person can meet: a stable code, grouped by what the caller must do about it.
 *
 * The table is data so that docs/errors.md and this file can be held against each other by a
 * test. A message always says what could not be done; the remedy says what to do next.
 */

/** configuration: fix it. retry: try again later. permanent: give up. lease: somebody else owns it. */
export type ErrorKind = 'configuration' | 'retry' | 'permanent' | 'lease';

export interface ErrorEntry {
  readonly kind: ErrorKind;
  /** What could not be done, in general. */
  readonly summary: string;
  /** What to do next. */
  readonly remedy: string;
}

export const ERRORS = {
  USAGE: {
    kind: 'configuration',
    summary: 'A flag or argument on the command line is not acceptable.',
    remedy: 'Correct what the message names; `agentd VERB --help` shows what a verb takes.',
  },
  CONFIG_INVALID: {
    kind: 'configuration',
    summary: 'The configuration is not acceptable.',
    remedy: 'Correct the named key; `agentd --config-schema` prints what is allowed.',
  },
  CONFIG_UNSET_VARIABLE: {
    kind: 'configuration',
    summary: 'A ${NAME} in a configuration file or a flag refers to an environment variable that is not set.',
    remedy: 'Set the variable, or write $${ for a literal ${.',
  },
  CONFIG_NOT_RELOADABLE: {
    kind: 'configuration',
    summary: 'A reload would change a key that cannot change while agentd runs.',
    remedy: 'Restart agentd to change the named key, or set it back and reload the rest.',
  },
  SECRET_UNREADABLE: {
    kind: 'configuration',
    summary: 'A secret that the configuration refers to cannot be read.',
    remedy: 'Set the named variable, or check that the named file exists and this user may read it.',
  },
  SECRET_UNUSABLE: {
    kind: 'configuration',
    summary: 'A secret that is sent in an HTTP header is no text that a header can hold.',
    remedy:
      'Store the token alone, on one line of plain characters; a line break is often added by the editor or by echo.',
  },
  NOT_IMPLEMENTED: {
    kind: 'configuration',
    summary: 'The flag belongs to the contract but this build does not implement it yet.',
    remedy: 'Remove the flag, or use a build whose `--capabilities` lists it.',
  },
  NO_FREE_SLOT: {
    kind: 'retry',
    summary: 'The instance cannot take an item now: every slot is taken, or it takes no new work.',
    remedy: 'Read agent://capacity, and assign the item to an instance with free slots.',
  },
  ITEM_UNROUTED: {
    kind: 'permanent',
    summary: 'No route of this instance matches the item.',
    remedy: 'Assign it to an instance with a route for it; agent://inventory lists the routes.',
  },
  FRAME_TOO_LARGE: {
    kind: 'permanent',
    summary: 'A control frame exceeds the size cap.',
    remedy: 'Return large bodies by reference instead of in the frame.',
  },
  FRAME_INVALID: {
    kind: 'permanent',
    summary: 'A control frame does not match the protocol.',
    remedy: 'Check that supervisor and child come from the same build.',
  },
  ADDRESS_IN_USE: {
    kind: 'configuration',
    summary: 'A listener could not be opened because its port is taken.',
    remedy: 'Choose another port (0 picks a free one), or stop the process that holds it.',
  },
  LISTEN_REFUSED: {
    kind: 'configuration',
    summary: 'A listener was asked for that would be unsafe or is impossible on this machine.',
    remedy:
      'Use http://127.0.0.1:PORT, or https:// with a certificate and a client authority or bearer token.',
  },
  TLS_UNUSABLE: {
    kind: 'configuration',
    summary: 'A certificate, key or certificate authority cannot be used.',
    remedy: 'Check that the files exist, are PEM, belong together and are readable by this user.',
  },
  WORK_ARGUMENTS_INVALID: {
    kind: 'permanent',
    summary: 'A work tool was called with arguments it cannot accept.',
    remedy: 'Correct the named argument; tools/list shows the schema of every tool.',
  },
  LEDGER_UNAVAILABLE: {
    kind: 'retry',
    summary: 'The database of the coordination server cannot be used.',
    remedy: 'Check that the database file or server is reachable and writable, then try again.',
  },
  LEDGER_OVERLOADED: {
    kind: 'retry',
    summary: 'The coordination server has more requests waiting than it may hold.',
    remedy: 'Try again after a pause, or send fewer requests at a time.',
  },
  LEDGER_SCHEMA_UNKNOWN: {
    kind: 'configuration',
    summary: 'The database was written by a different version of agentd.',
    remedy: 'Use the version of agentd that wrote it or a newer one, or point --db at another database.',
  },
  MCP_UNAVAILABLE: {
    kind: 'retry',
    summary: 'An MCP server cannot be reached, or the connection to it broke.',
    remedy: 'Start the server, or correct its address or command; the connection is retried meanwhile.',
  },
  MCP_UNAUTHORIZED: {
    kind: 'permanent',
    summary: 'An MCP server refuses the credential it is given.',
    remedy: 'Check the headers configured for the server and the secret they refer to.',
  },
  MCP_TIMEOUT: {
    kind: 'retry',
    summary: 'An MCP server gave neither an answer nor progress in time.',
    remedy: 'Look at the load of the server, or raise its timeout in the configuration.',
  },
  MCP_PROTOCOL: {
    kind: 'permanent',
    summary: 'An MCP server answered with a protocol error or with something that is no valid answer.',
    remedy: 'Check the name of the tool or resource and the version of the server.',
  },
  MCP_CANCELLED: {
    kind: 'permanent',
    summary: 'A request to an MCP server was given up by its caller.',
    remedy: 'Nothing: the caller no longer wanted the answer.',
  },
  COORDINATION_WITHOUT_WORK_TOOLS: {
    kind: 'configuration',
    summary: 'The coordination server of a claim route does not offer the tools claiming needs.',
    remedy: 'Name a server that lists work.claim and work.ack (or lease.cas for claim.style=resource).',
  },
  INTELLIGENCE_UNREACHABLE: {
    kind: 'retry',
    summary: 'No model endpoint gave an answer, after retries.',
    remedy: 'Check that an endpoint of --intelligence is up and reachable from this machine.',
  },
  INTELLIGENCE_AUTH: {
    kind: 'permanent',
    summary: 'The model endpoints refuse the credential.',
    remedy: 'Check --intelligence-token: it must be valid for the endpoint and the model.',
  },
  INTELLIGENCE_REJECTED: {
    kind: 'permanent',
    summary: 'The model endpoints do not accept the request.',
    remedy: 'Check --model and the path of --intelligence; the message quotes the answer of the endpoint.',
  },
  PLAYBOOK_INVALID: {
    kind: 'configuration',
    summary: 'A playbook of the scripted model cannot be read or is not acceptable.',
    remedy: 'Correct the named line; docs/playbooks.md describes the format.',
  },
  PLAYBOOK_ENDED: {
    kind: 'permanent',
    summary: 'A playbook of the scripted model has no turn left for the run.',
    remedy: 'End the list of turns with `final`, or give its last turn `repeat: forever`.',
  },
  OUTPUT_CONTRACT_INVALID: {
    kind: 'configuration',
    summary: 'An output contract is no JSON Schema that can be checked.',
    remedy: 'Use the JSON Schema keywords for types, properties, items, enumerations and bounds.',
  },
  SPAWN_FAILED: {
    kind: 'retry',
    summary: 'A process could not be started.',
    remedy:
      'Check that the program exists and may be run, and the limits on processes, memory and open files.',
  },
  SUBAGENT_UNKNOWN: {
    kind: 'permanent',
    summary: 'A handle names no running subagent.',
    remedy: '`agentd ps` and agent://inventory list the handles of those that run.',
  },
  INBOX_FOLDER_UNUSABLE: {
    kind: 'configuration',
    summary: 'The folder an inbox should serve does not exist, is no folder or cannot be read.',
    remedy: 'Name an existing folder that this user may read.',
  },
  INBOX_RESULTS_UNUSABLE: {
    kind: 'configuration',
    summary: 'The folder for the results of an inbox cannot be created, read or written.',
    remedy: 'Name a writable folder with --results DIR.',
  },
  INBOX_RESULTS_LOCKED: {
    kind: 'configuration',
    summary: 'Another inbox keeps its results in the same folder.',
    remedy: 'Stop the other inbox, or give this one a folder of its own with --results DIR.',
  },
  INBOX_TOO_LARGE: {
    kind: 'configuration',
    summary: 'A folder holds more documents than the inbox is allowed to serve.',
    remedy: 'Raise --max-files, or split the folder over several inboxes.',
  },
  INBOX_UNAVAILABLE: {
    kind: 'retry',
    summary: 'The folder an inbox serves is gone for the moment.',
    remedy: 'Bring the folder back; the inbox picks it up by itself. Then try again.',
  },
  DOCUMENT_UNKNOWN: {
    kind: 'permanent',
    summary: 'A URI names no document of the inbox.',
    remedy: 'Use a URI exactly as resources/list or the list tool gives it.',
  },
  DOCUMENT_TOO_LARGE: {
    kind: 'permanent',
    summary: 'A document is too large to be read as one resource.',
    remedy: 'Call the read tool with offset and length and page through the document.',
  },
  RESULT_NOT_STORED: {
    kind: 'retry',
    summary: 'A result could not be written to disk, so it does not count as filed.',
    remedy: 'Free space or repair the results folder, then call again with the same idempotency key.',
  },
  RESULTS_FULL: {
    kind: 'permanent',
    summary: 'The results folder holds as many results as the inbox keeps track of.',
    remedy: 'Archive the results folder and start the inbox with an empty one.',
  },
  IDEMPOTENCY_CONFLICT: {
    kind: 'permanent',
    summary: 'An idempotency key that filed a result for one document was used for another.',
    remedy: 'Use one key per document and piece of work.',
  },
  UNITS_MISSING: {
    kind: 'configuration',
    summary: 'The systemd unit files that belong to the package are not where the package is.',
    remedy: 'Install the whole package, with its systemd/ folder.',
  },
  UNITS_NOT_WRITTEN: {
    kind: 'configuration',
    summary: 'The systemd units of a fleet could not be written.',
    remedy: 'Name a folder this user may write, or run it as root for /etc/systemd/system.',
  },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERRORS;

export interface AgentdErrorOptions {
  readonly cause?: unknown;
  /** Replaces the general remedy of the code where something more exact can be said. */
  readonly remedy?: string;
  /** Process exit code when the error ends the process. Default: 2 for configuration, else 1. */
  readonly exitCode?: number;
}

/** An error with a stable code, a sentence for people and a remedy. */
export class AgentdError extends Error {
  readonly code: ErrorCode;
  readonly kind: ErrorKind;
  readonly remedy: string;
  readonly exitCode: number;

  constructor(code: ErrorCode, message: string, options: AgentdErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    const entry: ErrorEntry = ERRORS[code];
    this.name = 'AgentdError';
    this.code = code;
    this.kind = entry.kind;
    this.remedy = options.remedy ?? entry.remedy;
    this.exitCode = options.exitCode ?? (entry.kind === 'configuration' ? 2 : 1);
  }
}

/** The text of anything thrown, without a stack. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
