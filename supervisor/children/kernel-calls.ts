/** The two calls of the C library that Node does not offer. */
export interface KernelCalls {
  /** Orphaned descendants become children of this process. @throws Error when the kernel refuses */
  becomeSubreaper(): void;
  /** Waits for one exited child, without blocking. False when it is not ours or has not exited. */
  reap(pid: number): boolean;
}

const PR_SET_CHILD_SUBREAPER = 36;
const WNOHANG = 1;

/**
 * Loads them through koffi. About 30 ms, so it is done after start, and never where nobody asks.
 *
 * @throws Error when koffi or the C library cannot be loaded
 */
export async function loadKernelCalls(): Promise<KernelCalls> {
  const { default: koffi } = await import('koffi');
  const libc = koffi.load(null);
  const prctl = libc.func(
    'int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)',
  );
  const waitpid = libc.func('int waitpid(int pid, _Out_ int *status, int options)');
  return {
    becomeSubreaper: () => {
      if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) !== 0) throw new Error('prctl refused');
    },
    reap: (pid) => waitpid(pid, [0], WNOHANG) === pid,
  };
}
