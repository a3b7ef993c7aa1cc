/** The parts of docs/configuration.md that no schema can say. */

export const INTRODUCTION = `Settings come from four places; each key is decided by itself, and the later place wins:
built-in defaults, then files (\`--config\`, in the order given), then environment variables, then
flags. Mappings merge key by key; a list replaces the list under it. An empty variable counts as
unset. Everything is validated before anything is touched: a mistake ends with one
\`config.invalid\` line that names every problem and where it was written, and exit 2. What rests on
a value that is wrong already is not complained about.

\`agentd --validate-config\` prints the configuration in force and where each key came from;
\`agentd --config-schema\` prints the JSON Schema of a file. The file is YAML 1.2 (JSON is YAML), one
document, closed: an unknown key is an error.

- **Durations** are \`250ms\`, \`30s\`, \`5m\`, \`4h\` or plain seconds.
- **Sizes** are bytes, or \`K\`, \`M\`, \`G\`, \`T\` (also \`Ki\`, \`KiB\` …) in powers of 1024; \`kB\`, \`MB\` … are
  powers of 1000.
- **\`\${NAME}\`** in a string value of a file, or in the value of a flag, is replaced by the environment
  variable after the file or the flag was taken apart, so what a variable holds is text: it can
  never change the shape of a document, add an item to a list or become a secret reference. A name
  that is not set, or empty, is an error that names it and the flag or the place (exit 2); \`$\${\` is
  a literal \`\${\`, also in an instruction. It is the same for the flags of every verb, for the
  instruction of \`agentd run\` and the folder of \`agentd inbox\`; other arguments (items, handles,
  ids) are taken to the letter, and so are the values of environment variables. A shell expands
  \`\${NAME}\` itself unless it stands in single quotes, and makes nothing of an unset name:
  \`--route 'inbox:///\${PARTITION}/**=>spawn'\`.
- **Secrets** are references, \`{{secret:NAME}}\` for a variable or \`{{secret-file:PATH}}\` for a file,
  also inside text as in \`Bearer {{secret:TOKEN}}\`. The value is read when it is used and kept
  nowhere; one that no HTTP header can carry (a line break in it) is an error that names its source.
  A literal where a credential belongs is an error. \`AGENT_INTELLIGENCE_TOKEN\` holds the
  secret itself.
- **Paths** are relative to the working directory of the process.`;

export const SHORTHANDS = `- \`--mcp NAME=ENDPOINT\`: \`inbox=https://host/mcp\`, or \`files=stdio:node server.js --root "my files"\`.
  Words are split at blanks, quotes group, no shell is involved.
- \`--subscribe [SERVER:]URI\`: what stands before the first colon is a server when it is declared or
  when a whole URI follows it. A subscription no route could take gets a route of its own that
  starts a run.
- \`--route 'MATCH=>spawn'\`, \`'MATCH=>continue:SESSION'\`, \`'MATCH=>claim:SERVER[:STYLE]'\`, each with
  \`,key=value\` after it: \`name server session instruction instruction_file shard_key debounce
  max_inflight queue_cap overflow tools\`, and with a claim \`ttl renew_fraction style key\`. A comma
  inside a value is written \`\\,\`; several tools are separated by \`|\`.
- \`--claim URI=SERVER[:STYLE]\`: adds a claim to the route with that match, or makes one.
- \`--continue URI\`: a route whose changes all go to one session.
- In a file \`shard: 0/3\` is short for \`shard: {index: 0/3}\`.`;
