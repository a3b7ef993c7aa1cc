import { describe, expect, it } from 'vitest';
import { capabilitiesManifest } from '../../../protocol/manifest.ts';
import { describeCapabilities } from '../../../supervisor/cli/describe.ts';
import { buildManifest } from '../../../supervisor/config/manifest.ts';
import { load } from '../../helpers/load-config.ts';

describe('the capabilities manifest', () => {
  it('needs no instruction, no model and nothing to react to', async () => {
    const { config } = await load({ purpose: 'describe', defaultMode: 'reactive' });
    const manifest = describeCapabilities(config);
    expect(capabilitiesManifest.parse(manifest)).toEqual(manifest);
    expect(manifest).toMatchObject({
      contract_version: '1.0',
      mode: 'reactive',
      model: null,
      intelligence: { transport: null, endpoints: 0, healthy: 'unknown' },
      surfaces: { management: false, metrics: false, a2a: false, shard: null, config_validate: true },
    });
    expect(manifest.surfaces).not.toHaveProperty('claim');
  });

  it('says what is configured, and never where or with which credential', async () => {
    const { config } = await load({
      purpose: 'describe',
      env: {
        AGENT_POD_NAME: 'w-1',
        AGENT_POD_UID: 'uid',
        AGENT_NODE_NAME: 'node',
        AGENT_POD_NAMESPACE: 'ns',
      },
      flags: {
        '--intelligence': 'https://models.example/v1',
        '--model': 'm',
        '--intelligence-token': '{{secret:HUSH}}',
        '--mcp': ['s=https://tools.example/mcp'],
        '--mcp-tags': ['s=egress'],
        '--claim': ['a://b=s'],
        '--shard': 'auto/3',
      },
    });
    const manifest = describeCapabilities(config);
    expect(capabilitiesManifest.parse(manifest)).toEqual(manifest);
    expect(manifest).toMatchObject({
      identity: { instance: 'w-1', uid: 'uid', node: 'node', namespace: 'ns' },
      model: 'm',
      intelligence: { transport: 'https', endpoints: 1 },
      mcp_servers: [{ name: 's', tags: ['egress'] }],
      surfaces: { shard: '1/3', cluster: true, claim: { styles: expect.arrayContaining(['tool']) } },
    });
    expect(JSON.stringify(manifest)).not.toMatch(/example|HUSH/);
  });

  it('shows what a running supervisor serves', async () => {
    const { config } = await load({ purpose: 'describe' });
    const manifest = buildManifest(config, {
      runId: 'r',
      agentVersion: '1',
      intelligenceHealthy: true,
      management: 'http://127.0.0.1:1',
      metrics: '127.0.0.1:2',
    });
    expect(capabilitiesManifest.parse(manifest).surfaces).toMatchObject({
      management: 'http://127.0.0.1:1',
      metrics: '127.0.0.1:2',
      events: true,
      operator_tools: ['a2a.Drain', 'a2a.LameDuck', 'a2a.Pause', 'a2a.Resume', 'a2a.Cancel'],
    });
  });
});
