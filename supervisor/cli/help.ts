import { readFileSync } from 'node:fs';
import { AgentdError, ERRORS } from '../../protocol/errors.ts';
import { didYouMean } from '../config/suggest.ts';
import { explain } from '../console/help/explain.ts';
import { markdownText } from '../console/help/markdown-text.ts';
import { type Topic, topics } from '../console/help/topics.ts';
import { paintFor } from '../console/style.ts';
import { VERBS } from './help-text.ts';
import type { Host } from './host.ts';

/** Widest text that is comfortable to read, columns. */
const MOST_COLUMNS = 110;

/**
 * `agentd help WORD` for what is no verb: a topic of the documentation, an error code, an exit code
 * or a metric.
 *
 * @throws AgentdError USAGE
 */
export function helpOn(word: string, host: Host): number {
  const paint = paintFor(host.stdout, host.env);
  const all = topics();
  if (word === 'topics') {
    host.stdout.write(topicList(all));
    return 0;
  }
  const topic = all.find(({ name }) => name === word);
  const width = Math.min(host.stdout.columns ?? 100, MOST_COLUMNS);
  const text =
    topic === undefined ? explain(word) : markdownText(readFileSync(topic.path, 'utf8'), width, paint);
  if (text === null) throw unknown(word, all);
  host.stdout.write(text);
  return 0;
}

export function isTopic(word: string): boolean {
  return topics().some(({ name }) => name === word);
}

/** The topics, for the end of the overview. */
export function topicList(all: readonly Topic[] = topics()): string {
  if (all.length === 0) return 'The documentation is not installed beside the program.\n';
  const width = Math.max(...all.map(({ name }) => name.length)) + 2;
  return [
    'Topics (agentd help TOPIC):',
    ...all.map(({ name, title }) => `  ${name.padEnd(width)}${title}`),
    '',
    'An error code, an exit code or a metric is explained by its name: agentd help MCP_UNAVAILABLE.',
    '',
  ].join('\n');
}

function unknown(word: string, all: readonly Topic[]): AgentdError {
  const known = [...Object.keys(VERBS), ...all.map(({ name }) => name), ...Object.keys(ERRORS)];
  return new AgentdError('USAGE', `there is no help on ${JSON.stringify(word)}${didYouMean(word, known)}`, {
    remedy: '`agentd help topics` lists the topics, `agentd --help` the verbs.',
  });
}
