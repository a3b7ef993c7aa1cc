/**
 * Templates in playbooks: `{{event.uri}}`, `{{last.text|first:200}}`. A closed set of names, so
 * that a misspelt one is an error when the playbook is read and not an empty string in a result.
 */

export const TEMPLATE_NAMES = [
  'event.uri',
  'event.server',
  'run_id',
  'agent_path',
  'instruction',
  'last.text',
] as const;
export type TemplateName = (typeof TEMPLATE_NAMES)[number];

const SLOT = /\{\{([^{}]*)\}\}/g;
const SLOT_CONTENT = /^\s*([a-z_.]+)\s*(?:\|\s*first:(\d{1,9})\s*)?$/;

interface Slot {
  readonly name: TemplateName;
  /** Characters kept; null for all. */
  readonly first: number | null;
}

/** What is wrong with a template, or null. */
export function templateProblem(text: string): string | null {
  for (const match of text.matchAll(SLOT)) {
    if (parseSlot(match[1] ?? '') === null) {
      const names = TEMPLATE_NAMES.join(', ');
      return `${match[0]} is no template: use one of ${names}, optionally with |first:N`;
    }
  }
  return null;
}

/** Replaces every slot; one that is no template stays as it is. */
export function renderTemplate(text: string, lookup: (name: TemplateName) => string): string {
  return text.replace(SLOT, (whole, content: string) => {
    const slot = parseSlot(content);
    if (slot === null) return whole;
    const value = lookup(slot.name);
    // By code point, so that no surrogate pair is torn.
    return slot.first === null || value.length <= slot.first
      ? value
      : Array.from(value.slice(0, slot.first * 2))
          .slice(0, slot.first)
          .join('');
  });
}

/** Renders every string inside a JSON value; keys and other values are kept. */
export function renderValue(value: unknown, lookup: (name: TemplateName) => string): unknown {
  if (typeof value === 'string') return renderTemplate(value, lookup);
  if (Array.isArray(value)) return value.map((item) => renderValue(item, lookup));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, renderValue(item, lookup)]));
  }
  return value;
}

function parseSlot(content: string): Slot | null {
  const match = SLOT_CONTENT.exec(content);
  const name = TEMPLATE_NAMES.find((candidate) => candidate === match?.[1]);
  if (name === undefined) return null;
  return { name, first: match?.[2] === undefined ? null : Number(match[2]) };
}
