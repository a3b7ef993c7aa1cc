import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { EXIT_CODE_TABLE } from '../../../protocol/exit-codes.ts';
import { capabilitiesManifest } from '../../../protocol/manifest.ts';
import { SETTINGS } from '../../../supervisor/config/settings.ts';
import { runAgentd, startAgentd } from '../../helpers/run-agentd.ts';

describe('what prints and exits', () => {
  it.each([[['--capabilities']], [['supervise', '--capabilities']]])(
    'a manifest with no instruction: %j',
    async (args) => {
      const { code, stdout, stderr } = await runAgentd(args);
      const manifest = capabilitiesManifest.parse(JSON.parse(stdout));
      expect(manifest.mode).toBe(args[0] === 'supervise' ? 'reactive' : 'once');
      expect(stderr).toBe('');
      expect(code).toBe(0);
    },
  );

  it('the JSON Schema of the configuration', async () => {
    const { code, stdout } = await runAgentd(['--config-schema']);
    expect(JSON.parse(stdout)).toMatchObject({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      additionalProperties: false,
    });
    expect(code).toBe(0);
  });

  it('a valid configuration, with its warnings and no secret', async () => {
    const { code, stdout } = await runAgentd(
      ['run', 'x', '--validate-config', '--intelligence', 'https://models.example', '--drain-timeout', '40s'],
      { env: { AGENT_INTELLIGENCE_TOKEN: 'sk-hush' } },
    );
    const { valid, warnings, config } = JSON.parse(stdout);
    expect(valid).toBe(true);
    expect(warnings).toHaveLength(2);
    expect(config.intelligence.endpoints).toEqual([
      { url: 'https://models.example', token: '{{secret:AGENT_INTELLIGENCE_TOKEN}}' },
    ]);
    expect(stdout).not.toContain('sk-hush');
    expect(code).toBe(0);
  });

  it.each([[['--version']], [['-V']], [['--mode', 'once', '--version']]])('the version: %j', async (args) => {
    const { code, stdout } = await runAgentd(args);
    expect(stdout).toMatch(/^\d+\.\d+\.\d+(-\w+)?\n$/);
    expect(code).toBe(0);
  });

  it.each([[['--help']], [['help']], [['supervise', '--help']], [['run', '-h']], [['help', 'run']]])(
    'help with every exit code: %j',
    async (args) => {
      const { code, stdout, stderr } = await runAgentd(args);
      for (const row of EXIT_CODE_TABLE) expect(stdout).toContain(row.name);
      expect(stderr).toBe('');
      expect(code).toBe(0);
    },
  );

  it('help that names every flag and its variable', async () => {
    const { stdout } = await runAgentd(['--help']);
    for (const { flag, env } of SETTINGS) {
      if (flag === undefined) continue;
      expect(stdout).toContain(`${flag} `);
      if (env?.[0] !== undefined) expect(stdout).toContain(`[${env[0]}]`);
    }
    expect(stdout).not.toContain('--health-http');
  });
});

describe('several MB of JSON into a slow reader (H21)', () => {
  it('arrive complete', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'agentd-large-'));
    try {
      // One megabyte each is the largest a file may be; the dump of several is larger than any pipe.
      const names = [0, 1, 2, 3, 4].map((at) => {
        const servers = `mcp:\n  servers:\n    - {name: s${at}, command: [x, "${'y'.repeat(900_000)}"]}\n`;
        const routes = `agent: {output_contract: {part${at}: "${'z'.repeat(900_000)}"}}\n`;
        writeFileSync(join(dir, `${at}.yaml`), at === 0 ? servers : routes);
        return `--config=${at}.yaml`;
      });
      const child = startAgentd(
        ['run', 'x', '--intelligence', 'script:final', '--validate-config', ...names],
        { cwd: dir },
      );
      const closed = once(child, 'close');
      const chunks: Buffer[] = [];
      for await (const chunk of child.stdout ?? []) {
        chunks.push(chunk);
        // The reader is slow on purpose; nothing is being waited for.
        await pause(1);
      }
      expect(await closed).toEqual([0, null]);
      const text = Buffer.concat(chunks).toString('utf8');
      expect(text.length).toBeGreaterThan(4_000_000);
      expect(JSON.parse(text)).toMatchObject({ valid: true });
    } finally {
      rmSync(dir, { recursive: true });
    }
  });

  it('and a reader that goes away change nothing but the output', async () => {
    const child = startAgentd(['--config-schema']);
    const closed = once(child, 'close');
    child.stdout?.destroy();
    expect(await closed).toEqual([0, null]);
  });
});
