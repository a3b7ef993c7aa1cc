/** The Prometheus text format (version 0.0.4), read strictly: a line that does not fit is an error. */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly samples: Sample[];
}

const HELP = /^# HELP ([a-z_]+) (.+)$/;
const TYPE = /^# TYPE ([a-z_]+) (counter|gauge|histogram)$/;
const SAMPLE = /^([a-z_]+)(?:\{(.*)\})? (-?[0-9.e+]+|NaN|\+Inf)$/;
const LABEL = /^([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/;

export function parseExposition(text: string): ReadonlyMap<string, Family> {
  const families = new Map<string, Family>();
  let help: RegExpExecArray | null = null;
  let family: Family | null = null;
  for (const line of text.split('\n')) {
    if (line === '') continue;
    if (line.startsWith('# HELP')) {
      help = HELP.exec(line);
      if (help === null) throw new Error(`a HELP line that is none: ${line}`);
      continue;
    }
    const type = TYPE.exec(line);
    if (type !== null) {
      const [, name = '', kind = ''] = type;
      if (help?.[1] !== name) throw new Error(`${name} has no HELP before its TYPE`);
      if (families.has(name)) throw new Error(`${name} appears twice`);
      family = { name, help: help[2] ?? '', type: kind, samples: [] };
      families.set(name, family);
      continue;
    }
    const sample = SAMPLE.exec(line);
    const [, name = '', labels = '', value = ''] = sample ?? [];
    if (sample === null || family === null) throw new Error(`a line that is no sample: ${line}`);
    const own = family.type === 'histogram' ? name.replace(/_(bucket|sum|count)$/, '') : name;
    if (own !== family.name) throw new Error(`${name} stands under ${family.name}`);
    family.samples.push({
      name,
      labels: parseLabels(labels),
      value: Number(value.replace('+Inf', 'Infinity')),
    });
  }
  return families;
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (let rest = text; rest !== ''; ) {
    const found = LABEL.exec(rest);
    if (found === null) throw new Error(`labels that are none: ${rest}`);
    const [whole, name = '', value = ''] = found;
    labels[name] = value.replace(/\\(.)/g, (_, sign: string) => (sign === 'n' ? '\n' : sign));
    rest = rest.slice(whole.length);
  }
  return labels;
}

/** The sum of the samples of a counter or gauge that carry these labels. */
export function figureOf(
  families: ReadonlyMap<string, Family>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  const matching = (families.get(name)?.samples ?? []).filter((sample) =>
    Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  );
  return matching.reduce((sum, { value }) => sum + value, 0);
}
