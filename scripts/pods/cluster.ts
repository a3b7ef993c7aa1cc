import { chmod, chown, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { execa } from 'execa';
import { InboxClient, tally } from '../fleet/inbox-client.ts';
import { until } from '../systemd/container.ts';
import { type Engine, type Ran, succeeded } from './engine.ts';
import { type Circumstances, playable } from './playable.ts';

/**
 * What a cluster gives the manifests: a network of pods, names for their servers, Secrets as the kubelet
 * would mount them, and an MCP source behind TLS. In a network namespace of its own.
 */

const SUBNET = '10.89.77';
const GATEWAY = `${SUBNET}.1`;
/** The group of the pods; `fsGroup` makes the kubelet give it their Secrets. */
const GROUP = 65532;
const INBOX_PORT = 7412;
const TOKENS = { 'model-token': 'm-token', 'inbox-token': 'i-token', 'coord-token': 'c-token' } as const;

export interface Pod {
  readonly name: string;
  readonly container: string;
  readonly ip: string;
}

/** Which pod is played, and how: see Circumstances. */
export type Played = Pick<Circumstances, 'playbook' | 'configuration'>;

export class Cluster {
  private addresses = 10;
  private documents = 0;

  private constructor(
    readonly engine: Engine,
    readonly image: string,
    private readonly secrets: string,
    private readonly folder: string,
  ) {}

  static async start(engine: Engine, image: string): Promise<Cluster> {
    const folder = join(engine.folder, 'cluster');
    await rm(folder, { recursive: true, force: true });
    const secrets = join(folder, 'secrets');
    await mkdir(secrets, { recursive: true });
    await execa('ip', ['link', 'set', 'lo', 'up']);
    const cluster = new Cluster(engine, image, secrets, folder);
    // What a run that was killed has left in a folder that is kept.
    await cluster.close();
    await cluster.podman('network', 'create', '--disable-dns', '--subnet', `${SUBNET}.0/24`, 'agents');
    await cluster.makeSecrets();
    await cluster.serveInbox();
    return cluster;
  }

  /** Runs podman. @throws Error with its last words when it fails */
  async podman(...args: string[]): Promise<string> {
    return succeeded(`podman ${args.slice(0, 3).join(' ')}`, await this.engine.podman(...args));
  }

  /** Runs the image once as the manifests' pods run it: read-only, without capabilities. */
  async once(options: readonly string[], ...args: string[]): Promise<Ran> {
    const secure = ['--read-only', '--read-only-tmpfs=false', '--cap-drop=all', '--tmpfs=/tmp'];
    const how = ['run', '--rm', ...secure, '--security-opt=no-new-privileges', ...options];
    return this.engine.podman(...how, this.image, ...args);
  }

  /** Plays the workload of a manifest as the pod `name`. */
  async play(file: string, name: string, played: Played = {}): Promise<Pod> {
    const ip = file === 'coordinator.yaml' ? `${SUBNET}.2` : `${SUBNET}.${this.addresses++}`;
    const text = await playable(file, { pod: name, secrets: this.secrets, hosts: this.hosts, ...played });
    const path = join(this.folder, `${name}.yaml`);
    await writeFile(path, text);
    await this.podman('kube', 'play', '--network', `agents:ip=${ip}`, path);
    return { name, container: `${name}-agentd`, ip };
  }

  /** The names that the manifests know their servers by. */
  get hosts(): Readonly<Record<string, string>> {
    return { 'coord.agents.svc': `${SUBNET}.2`, 'inbox.agents.svc': GATEWAY };
  }

  /** Podman's options for a container that is not played, but reaches the servers and has a Secret. */
  beside(secret: string): string[] {
    const names = Object.entries(this.hosts).map(([name, ip]) => `--add-host=${name}:${ip}`);
    return ['--network=agents', ...names, '-v', `${join(this.secrets, secret)}:/run/secrets/agentd:ro`];
  }

  /** What the kubelet's probe of a pod would see; 0: no answer. */
  async probe({ ip }: Pod, path: string): Promise<number> {
    const answer = await fetch(`http://${ip}:9090${path}`, { signal: AbortSignal.timeout(3_000) }).catch(
      () => null,
    );
    await answer?.body?.cancel();
    return answer?.status ?? 0;
  }

  /** Waits for a pod to be ready. One that ends before is started again, as in a cluster. */
  async ready(pod: Pod): Promise<void> {
    await until(`${pod.name} to be ready`, 120_000, async () => {
      if ((await this.probe(pod, '/readyz')) === 200) return true;
      throw new Error(await this.logs(pod));
    });
  }

  /** Sends SIGTERM, and SIGKILL after the grace, as the kubelet does. @returns the exit code */
  async stop({ container }: Pod, graceSeconds: number): Promise<number> {
    await this.podman('stop', '-t', String(graceSeconds), container);
    return this.exitCode({ container });
  }

  /** Waits for the end of a pod's container. */
  async exitCode({ container }: Pick<Pod, 'container'>): Promise<number> {
    return Number(await this.podman('wait', container));
  }

  async logs({ container }: Pod): Promise<string> {
    const { stdout, stderr } = await this.engine.podman('logs', container);
    return `${stdout}\n${stderr}`;
  }

  /** Event lines of a pod. */
  async events(pod: Pod): Promise<Record<string, unknown>[]> {
    const lines = (await this.logs(pod)).split('\n').filter((line) => line.startsWith('{'));
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** Puts documents into the inbox. */
  async submit(count: number): Promise<void> {
    for (let each = 0; each < count; each++)
      await writeFile(join(this.folder, 'inbox', `${++this.documents}.md`), `document ${this.documents}\n`);
  }

  async inbox<T>(use: (inbox: InboxClient) => Promise<T>): Promise<T> {
    const client = await InboxClient.connect(`http://127.0.0.1:${INBOX_PORT}/mcp`);
    try {
      return await use(client);
    } finally {
      await client.close();
    }
  }

  /** Waits until every document has a result. */
  async finished(): Promise<void> {
    await until(`all ${this.documents} documents to be finished`, 180_000, async () =>
      (await this.inbox((inbox) => inbox.finished())) === this.documents ? true : undefined,
    );
  }

  /** Results beyond the first of a document. */
  async duplicates(): Promise<number> {
    return this.inbox(async (inbox) => tally(await inbox.documents(), await inbox.results()).duplicates);
  }

  /** Ends every pod and takes it away. */
  async close(): Promise<void> {
    await this.engine.podman('pod', 'rm', '--all', '--force', '-t', '5');
    await this.engine.podman('rm', '--all', '--force', '-t', '5');
    await this.engine.podman('volume', 'rm', '--all', '--force');
    await this.engine.podman('network', 'rm', '--force', 'agents');
  }

  private async makeSecrets(): Promise<void> {
    const at = (name: string): string => join(this.folder, name);
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    const authority = [
      '-x509',
      '-days',
      '2',
      '-subj',
      '/CN=proof',
      '-keyout',
      at('ca.key'),
      '-out',
      at('ca.crt'),
    ];
    await execa('openssl', ['req', ...key, ...authority]);
    await execa('openssl', [
      'req',
      ...key,
      '-subj',
      '/CN=s',
      '-keyout',
      at('tls.key'),
      '-out',
      at('tls.csr'),
    ]);
    const names = Object.keys(this.hosts).map((name) => `DNS:${name}`);
    await writeFile(at('names'), `subjectAltName=${names.join(',')}\n`);
    const signer = ['-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-CAcreateserial', '-days', '2'];
    const files = ['-in', at('tls.csr'), '-extfile', at('names'), '-out', at('tls.crt')];
    await execa('openssl', ['x509', '-req', ...signer, ...files]);
    const read = (name: string): Promise<string> => readFile(at(name), 'utf8');
    const fleet = { ...TOKENS, 'ca.crt': await read('ca.crt') };
    await this.secret('agentd-coordinator', { token: TOKENS['coord-token'] });
    await this.secret('agentd-coordinator-tls', {
      'tls.crt': await read('tls.crt'),
      'tls.key': await read('tls.key'),
    });
    for (const name of ['agentd-claiming', 'agentd-sharded', 'agentd-job']) await this.secret(name, fleet);
  }

  /** As the kubelet mounts one with `defaultMode: 0440` into a pod with an fsGroup. */
  private async secret(name: string, data: Readonly<Record<string, string>>): Promise<void> {
    const folder = join(this.secrets, name);
    await mkdir(folder);
    for (const [key, value] of Object.entries(data)) {
      const file = join(folder, key);
      await writeFile(file, value);
      await chmod(file, 0o440);
      await chown(file, 0, GROUP);
    }
  }

  /** An inbox from the same image on loopback, with TLS in front of it for the pods. */
  private async serveInbox(): Promise<void> {
    const documents = join(this.folder, 'inbox');
    await mkdir(documents);
    await chown(documents, GROUP, GROUP);
    const served = ['inbox', '/inbox', '--listen', `http://127.0.0.1:${INBOX_PORT}`];
    await this.podman('run', '-d', '--network=host', '-v', `${documents}:/inbox`, this.image, ...served);
    const [cert, key] = await Promise.all(
      ['tls.crt', 'tls.key'].map((name) => readFile(join(this.folder, name))),
    );
    const to = { host: '127.0.0.1', port: INBOX_PORT };
    const front = createServer({ cert, key }, (incoming, outgoing) => {
      const { method, url: path, headers } = incoming;
      const host = `${to.host}:${to.port}`;
      const onward = request({ ...to, method, path, headers: { ...headers, host } }, (reply) => {
        outgoing.writeHead(reply.statusCode ?? 502, reply.headers);
        reply.pipe(outgoing);
      });
      onward.on('error', () => outgoing.destroy());
      outgoing.on('close', () => onward.destroy());
      incoming.pipe(onward);
    });
    // Ends with the process.
    await new Promise<void>((resolve) => front.listen(8443, resolve));
    front.unref();
    await until('the inbox to answer', 30_000, () => this.inbox(async () => true));
  }
}
