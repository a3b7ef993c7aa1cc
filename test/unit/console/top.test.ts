import { PassThrough } from 'node:stream';
import { describe, expect, it, vi } from 'vitest';
import { METRICS } from '../../../protocol/metrics-registry.ts';
import { coloured, plain, widthOf } from '../../../supervisor/console/style.ts';
import { frameLines, visibleLines, type Watched } from '../../../supervisor/console/top/frame.ts';
import { openScreen } from '../../../supervisor/console/top/ink-screen.ts';
import { parseSamples } from '../../../supervisor/console/top/samples.ts';
import { eventually } from '../../helpers/eventually.ts';
import { fakeManagementPort } from '../../helpers/fake-management-port.ts';

// ink draws nothing until the end where it believes to run in continuous integration.
vi.hoisted(() => {
  process.env.CI = 'false';
});

const TEXT = `# HELP agent_tokens_total x
# TYPE agent_tokens_total counter
agent_tokens_total{model="a,b",type="in"} 1200
agent_tokens_total{model="c",type="in"} 34
agent_tokens_total{model="c",type="out"} 7
agent_claims_granted_total 5
agent_claims_lost_total 2
agent_intelligence_latency_ms{quantile="p95"} 2100
agent_memory_current_bytes 1048576
agent_reaction_lag_ms NaN
`;

function up(saturation = 0.25): Watched {
  const port = fakeManagementPort();
  return {
    kind: 'up',
    url: 'http://one',
    state: {
      url: 'http://one',
      status: port.status(),
      inventory: port.inventory(),
      capacity: { ...port.capacity(), saturation },
    },
    samples: parseSamples(TEXT),
  };
}

describe('the figures of agentd top', () => {
  it('are read from the Prometheus text, summed over labels', () => {
    const samples = parseSamples(TEXT);
    expect(samples.sum('agent_tokens_total')).toBe(1_241);
    expect(samples.sum('agent_tokens_total', ['type', 'in'])).toBe(1_234);
    expect(samples.sum('agent_reaction_lag_ms')).toBe(0);
    expect(samples.value('agent_intelligence_latency_ms', ['quantile', 'p95'])).toBe(2_100);
    expect(samples.value('agent_intelligence_latency_ms', ['quantile', 'p50'])).toBeNull();
    expect(samples.sum('nothing')).toBe(0);
  });

  it('come from metrics of the registry only', async () => {
    const { readFile } = await import('node:fs/promises');
    const source = await readFile('supervisor/console/top/frame.ts', 'utf8');
    const named = [...source.matchAll(/'(agent_[a-z_]+)'/g)].map(([, name]) => name);
    expect(named.length).toBeGreaterThan(10);
    const known: readonly string[] = METRICS.map(({ name }) => name);
    expect(named.filter((name) => !known.includes(name ?? ''))).toEqual([]);
  });
});

describe('a frame of agentd top', () => {
  it('shows gates, claims, tokens, the model and the agents of each instance', () => {
    const down: Watched = { kind: 'down', url: 'http://two', reason: 'cannot\u001b[2J reach it' };
    const lines = frameLines([up(), down, { kind: 'waiting', url: 'http://three' }], plain);
    const text = lines.join('\n');
    expect(text).toContain('load    ███░░░░░░░ 25%');
    expect(text).toContain('claims  granted 5 · lost 2 · released 0 · expired 0');
    expect(text).toContain('tokens  1,234 in · 7 out · 0/s · no budget');
    expect(text).toContain('p95 2.1 s');
    expect(text).toContain('cgroup 1.0 MiB');
    expect(text).toContain('itself  CPU 1.5% · RSS 90.0 MiB · pid 4711');
    expect(text).toContain('  └─ 0.2  running');
    expect(text).toContain('http://two  cannot\\u001b[2J reach it');
    expect(text).toContain('http://three  connecting');
  });

  it('is cut to the screen, colours closed, and scrolled no further than it goes', () => {
    const lines = frameLines([up(1), up(0.7)], coloured);
    const size = { columns: 40, rows: 5 };
    const [first, last] = [visibleLines(lines, size, 0), visibleLines(lines, size, 1_000)];
    expect(first).toHaveLength(5);
    expect(last).toHaveLength(5);
    expect(last).not.toEqual(first);
    for (const line of [...first, ...last]) {
      expect(widthOf(line)).toBeLessThanOrEqual(40);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: escapes are counted
      expect((line.match(/\u001b\[\d+m/g) ?? []).length % 2).toBe(0);
    }
    expect(visibleLines(['short'], size, 9)).toEqual(['short']);
  });
});

describe('the live screen', () => {
  it('shows what it is given, scrolls and freezes by key, and gives the terminal back', async () => {
    const stdout = Object.assign(new PassThrough(), { columns: 100, rows: 8, isTTY: true });
    const stdin = Object.assign(new PassThrough(), {
      isTTY: true,
      setRawMode: () => stdin,
      ref: () => stdin,
      unref: () => stdin,
    });
    let text = '';
    stdout.on('data', (chunk) => {
      text += String(chunk);
    });
    const screen = await openScreen({
      stdout: stdout as unknown as NodeJS.WriteStream,
      stdin: stdin as unknown as NodeJS.ReadStream,
      paint: plain,
    });
    screen.update([up()]);
    await eventually('the frame', () => text.includes('claims  granted 5'));
    expect(text).not.toContain('└─ 0.2');
    for (let i = 0; i < 3; i += 1) stdin.write('\u001b[B');
    stdin.write('j');
    await eventually('the end of the frame', () => text.includes('└─ 0.2'));
    stdin.write(' ');
    await eventually('the frozen screen', () => text.includes('frozen'));
    stdin.write('q');
    await screen.left;
    expect(text.endsWith('\u001b[?1049l')).toBe(true);
    await screen.close();
  });
});
