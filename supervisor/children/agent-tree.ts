import type { RunLimits, ToolDescriptor } from '../../protocol/frames.ts';
import { type Bucket, type BucketRate, fullBucket, takeToken } from './token-bucket.ts';

/** What a tree of agents may grow to. */
export interface TreeCaps {
  /** Depth of the deepest agent; roots have depth 0. */
  readonly maxDepth: number;
  /** Running subagents under one node. */
  readonly maxChildren: number;
  /** Running agents in the whole supervisor, roots included. */
  readonly maxTotal: number;
  /** Tokens of one root and everything under it. */
  readonly treeTokens: number;
  readonly spawnRate: BucketRate;
}

export type Disposition = 'sync' | 'async' | 'detach';

export interface SpawnRequest {
  readonly instruction: string;
  /** Names of the parent's tools; null: all of them. */
  readonly tools: readonly string[] | null;
  readonly disposition: Disposition;
  readonly maxSteps: number | null;
  readonly maxTokens: number | null;
  readonly deadlineMs: number | null;
  readonly outputContract: Record<string, unknown> | null;
}

/** Labels of `agent_refusals_total` and `agent_limit_exceeded_total`. */
export type RefusalReason = 'trifecta' | 'rate' | 'budget' | 'depth' | 'mcp' | 'other';
export type RefusedLimit = 'depth' | 'spawn_rate' | 'tree_tokens' | 'other';

export interface Refusal {
  readonly granted: false;
  readonly reason: RefusalReason;
  /** The limit that stood in the way; null where it was no limit. */
  readonly limit: RefusedLimit | null;
  /** For the model: what was refused, and what it can do instead. */
  readonly text: string;
}

export interface Grant {
  readonly granted: true;
  readonly path: string;
  readonly depth: number;
  readonly root: string;
  readonly tools: readonly ToolDescriptor[];
  readonly limits: RunLimits;
}

interface Node {
  /** Of the whole tree, as they were when its root came. */
  readonly caps: TreeCaps;
  readonly path: string;
  readonly parent: string | null;
  readonly root: string;
  readonly depth: number;
  readonly children: Set<string>;
  readonly tools: readonly ToolDescriptor[];
  readonly limits: RunLimits;
  /** Monotonic ms by which it must have ended. */
  readonly endsBy: number;
  /** Subagents ever started under it: the next one's number. */
  spawned: number;
  /** In and out, as last reported. */
  tokens: number;
  /** It is being stopped or has answered: nothing grows under it any more. */
  tearingDown: boolean;
}

/**
 * The chokepoint through which every agent comes into being. Decides synchronously and without
 * effects outside itself: what it grants is in the tree when it returns.
 */
export class AgentTree {
  private readonly nodes = new Map<string, Node>();
  /** Tokens of subagents that have ended, by root path. */
  private readonly spent = new Map<string, number>();
  private roots = 0;
  private bucket: Bucket;

  constructor(
    private caps: TreeCaps,
    now: number,
  ) {
    this.bucket = fullBucket(caps.spawnRate, now);
  }

  get size(): number {
    return this.nodes.size;
  }

  /** Other caps: on the whole from here on, on a tree from its next root on. */
  configure(caps: TreeCaps): void {
    this.caps = caps;
  }

  /** Depth of the deepest running agent; 0 when there is none. */
  get depth(): number {
    return Math.max(0, ...[...this.nodes.values()].map((node) => node.depth));
  }

  /** Largest number of running children under one node. */
  get breadth(): number {
    return Math.max(0, ...[...this.nodes.values()].map((node) => node.children.size));
  }

  /** Enters a root. The engine's own gates have admitted it already. */
  addRoot(
    run: { readonly tools: readonly ToolDescriptor[]; readonly limits: RunLimits },
    only: boolean,
    now: number,
  ): Grant {
    const path = only && !this.nodes.has('0') ? '0' : `0.${++this.roots}`;
    const { tools, limits } = run;
    const grant: Grant = { granted: true, path, depth: 0, root: path, tools, limits };
    this.enter(grant, null, now);
    this.spent.set(path, 0);
    return grant;
  }

  /** Decides a request of the agent at `parentPath` and, when granted, enters the new agent. */
  request(parentPath: string, wanted: SpawnRequest, now: number): Grant | Refusal {
    const parent = this.nodes.get(parentPath);
    if (parent === undefined || parent.tearingDown) {
      return refuse(
        'other',
        null,
        'this agent is being stopped, so it can start no subagent; finish with what you have',
      );
    }
    const { caps } = parent;
    if (parent.depth + 1 > caps.maxDepth) {
      return refuse(
        'depth',
        'depth',
        `subagents may be at most ${caps.maxDepth} levels deep and this agent is on the last one; do the task yourself`,
      );
    }
    if (parent.children.size >= caps.maxChildren) {
      return refuse(
        'other',
        'other',
        `this agent already has ${parent.children.size} subagents running, the most it may have; wait for one to end, or cancel one`,
      );
    }
    if (this.nodes.size >= this.caps.maxTotal) {
      return refuse(
        'other',
        'other',
        `${this.nodes.size} agents are running, the most this supervisor allows; do the task yourself, or try again later`,
      );
    }
    const unknown = (wanted.tools ?? []).filter((name) => !parent.tools.some((tool) => tool.name === name));
    if (unknown.length > 0) {
      return refuse(
        'mcp',
        null,
        `a subagent can have only tools that you have yourself, and you do not have: ${unknown.slice(0, 16).join(', ')}`,
      );
    }
    const tokensLeft = caps.treeTokens - this.tokensOf(parent.root);
    if (tokensLeft < 1) {
      return refuse(
        'budget',
        'tree_tokens',
        `the ${caps.treeTokens} tokens of this tree of agents are spent; finish with what you have`,
      );
    }
    const msLeft = Math.floor(parent.endsBy - now);
    if (msLeft < 1) {
      return refuse(
        'budget',
        'other',
        'there is no time left before your own deadline; finish with what you have',
      );
    }
    const { taken, bucket } = takeToken(this.bucket, this.caps.spawnRate, now);
    this.bucket = bucket;
    if (!taken) {
      return refuse(
        'rate',
        'spawn_rate',
        `subagents are being started too fast (${caps.spawnRate.burst} at once, then ${caps.spawnRate.perSecond} a second); try again in a second`,
      );
    }
    parent.spawned += 1;
    const names = wanted.tools === null ? null : new Set(wanted.tools);
    const grant: Grant = {
      granted: true,
      path: `${parent.path}.${parent.spawned}`,
      depth: parent.depth + 1,
      root: parent.root,
      tools: parent.tools.filter((tool) => names?.has(tool.name) ?? true),
      limits: {
        max_steps: clamp(wanted.maxSteps, parent.limits.max_steps),
        max_tokens: clamp(wanted.maxTokens, Math.min(parent.limits.max_tokens, tokensLeft)),
        deadline_ms: clamp(wanted.deadlineMs, Math.min(parent.limits.deadline_ms, msLeft)),
        tool_timeout_ms: parent.limits.tool_timeout_ms,
      },
    };
    this.enter(grant, parent, now);
    return grant;
  }

  /** Takes in what an agent has used. True when its tree has just passed its budget. */
  report(path: string, tokens: number): boolean {
    const node = this.nodes.get(path);
    if (node === undefined) return false;
    const { treeTokens } = node.caps;
    const before = this.tokensOf(node.root);
    node.tokens = Math.max(node.tokens, tokens);
    return before <= treeTokens && this.tokensOf(node.root) > treeTokens;
  }

  /** Nothing grows under it any more. */
  tearDown(path: string): void {
    const node = this.nodes.get(path);
    if (node !== undefined) node.tearingDown = true;
  }

  /** Running descendants, deepest first. */
  descendants(path: string): string[] {
    const children = [...(this.nodes.get(path)?.children ?? [])];
    return children.flatMap((child) => [...this.descendants(child), child]);
  }

  /** Paths of the ancestors, nearest first. */
  ancestors(path: string): string[] {
    const found: string[] = [];
    let parent = this.nodes.get(path)?.parent ?? null;
    while (parent !== null) {
      found.push(parent);
      parent = this.nodes.get(parent)?.parent ?? null;
    }
    return found;
  }

  /** Every agent of the tree `path` stands in, deepest first. */
  wholeTree(path: string): string[] {
    const root = this.nodes.get(path)?.root;
    if (root === undefined) return [];
    return [...this.nodes.values()]
      .filter((node) => node.root === root)
      .sort((a, b) => b.depth - a.depth)
      .map((node) => node.path);
  }

  /** The agent has ended. Its children, if any are left, stay in the tree as detached. */
  remove(path: string): void {
    const node = this.nodes.get(path);
    if (node === undefined) return;
    this.nodes.delete(path);
    if (node.parent !== null) this.nodes.get(node.parent)?.children.delete(path);
    const spent = (this.spent.get(node.root) ?? 0) + node.tokens;
    const populated = [...this.nodes.values()].some((other) => other.root === node.root);
    if (populated) this.spent.set(node.root, spent);
    else this.spent.delete(node.root);
  }

  private tokensOf(root: string): number {
    let sum = this.spent.get(root) ?? 0;
    for (const node of this.nodes.values()) if (node.root === root) sum += node.tokens;
    return sum;
  }

  private enter(grant: Grant, parent: Node | null, now: number): void {
    parent?.children.add(grant.path);
    this.nodes.set(grant.path, {
      caps: parent?.caps ?? this.caps,
      path: grant.path,
      parent: parent?.path ?? null,
      root: grant.root,
      depth: grant.depth,
      children: new Set(),
      tools: grant.tools,
      limits: grant.limits,
      endsBy: now + grant.limits.deadline_ms,
      spawned: 0,
      tokens: 0,
      tearingDown: false,
    });
  }
}

function clamp(wanted: number | null, most: number): number {
  return Math.max(1, Math.min(wanted ?? most, most));
}

function refuse(reason: RefusalReason, limit: RefusedLimit | null, text: string): Refusal {
  return { granted: false, reason, limit, text };
}
