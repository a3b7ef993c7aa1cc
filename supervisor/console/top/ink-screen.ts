import { Box, render, Text, useApp, useInput, useStdout } from 'ink';
import { createElement, type ReactElement, useEffect, useState } from 'react';
import type { Paint } from '../style.ts';
import { frameLines, visibleLines, type Watched } from './frame.ts';

/** The live screen of `agentd top`. The only module that knows of ink and react. */

export interface ScreenOptions {
  readonly stdout: NodeJS.WriteStream;
  readonly stdin: NodeJS.ReadStream;
  readonly paint: Paint;
}

export interface Screen {
  update(watched: readonly Watched[]): void;
  /** Resolves when the user has left. */
  readonly left: Promise<void>;
  /** Leaves, restoring what was on the terminal before. */
  close(): Promise<void>;
}

const ENTER_ALTERNATE = '\u001b[?1049h\u001b[H';
const LEAVE_ALTERNATE = '\u001b[?1049l';
/** The line of the header, and the last line, which ink needs for itself. */
const OWN_ROWS = 2;

/** What the screen shows, and whom to tell that it has changed. */
interface Feed {
  latest: readonly Watched[];
  changed: () => void;
}

interface TopProps {
  readonly feed: Feed;
  readonly paint: Paint;
  /** Keys can be read. */
  readonly keys: boolean;
}

function Top({ feed, paint, keys }: TopProps): ReactElement {
  const { exit } = useApp();
  const { stdout } = useStdout();
  const [, redraw] = useState(0);
  const [scroll, setScroll] = useState(0);
  const [frozen, setFrozen] = useState<readonly Watched[] | null>(null);
  useEffect(() => {
    const again = (): void => redraw((count) => count + 1);
    feed.changed = again;
    stdout.on('resize', again);
    return () => {
      stdout.off('resize', again);
      feed.changed = () => undefined;
    };
  }, [feed, stdout]);
  const size = { columns: stdout.columns, rows: Math.max(1, stdout.rows - OWN_ROWS) };
  const lines = frameLines(frozen ?? feed.latest, paint);
  const most = Math.max(0, lines.length - size.rows);
  const move = (by: number): void => setScroll((now) => Math.max(0, Math.min(most, now + by)));
  useInput(
    (input, key) => {
      if (input === 'q' || key.escape) exit();
      else if (input === ' ') setFrozen((now) => (now === null ? feed.latest : null));
      else if (key.upArrow || input === 'k') move(-1);
      else if (key.downArrow || input === 'j') move(1);
      else if (key.pageUp) move(-size.rows);
      else if (key.pageDown) move(size.rows);
    },
    { isActive: keys },
  );
  const header = [
    paint('bold', 'agentd top'),
    new Date().toTimeString().slice(0, 8),
    ...(frozen === null ? [] : [paint('yellow', 'frozen')]),
    paint('dim', keys ? 'q leaves · space freezes · ↑ ↓ scroll' : 'ctrl-c leaves'),
  ].join('  ');
  return createElement(
    Box,
    { flexDirection: 'column' },
    createElement(Text, { wrap: 'truncate' }, header),
    createElement(Text, { wrap: 'truncate' }, visibleLines(lines, size, scroll).join('\n')),
  );
}

/** Takes over the terminal. */
export async function openScreen({ stdout, stdin, paint }: ScreenOptions): Promise<Screen> {
  const feed: Feed = { latest: [], changed: () => undefined };
  const top = createElement(Top, { feed, paint, keys: stdin.isTTY === true });
  stdout.write(ENTER_ALTERNATE);
  const app = render(top, { stdout, stdin, exitOnCtrlC: true, patchConsole: false });
  const left = app.waitUntilExit().then(() => {
    stdout.write(LEAVE_ALTERNATE);
  });
  return {
    left,
    update: (watched) => {
      feed.latest = watched;
      feed.changed();
    },
    close: async () => {
      app.unmount();
      await left;
    },
  };
}
