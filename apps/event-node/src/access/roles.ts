/** The parts of the product that have a credential of their own, and what each may write by default. */
export const ROLES = ['api', 'agent', 'projector'] as const;
export type Role = (typeof ROLES)[number];

interface RoleRights {
  /** Prefixes of the streams that it may append to, and whose metadata it may set. */
  readonly writes: readonly string[];
  readonly mayDelete: boolean;
}

/** Every process may begin the log's identity; only the first event of that stream counts. */
const IDENTITY = 'log-identity';

const RIGHTS: Readonly<Record<Role, RoleRights>> = {
  // Keys, settings and the fleet are the api's alone; the empty prefix is every ordinary stream.
  api: { writes: [''], mayDelete: true },
  agent: {
    writes: ['worker-', 'history-', 'catalog-', 'operator-', 'pull-', 'readings-', IDENTITY],
    mayDelete: false,
  },
  projector: { writes: [IDENTITY], mayDelete: false },
};

export const isRole = (name: string): name is Role => (ROLES as readonly string[]).includes(name);

export function roleMay(role: Role, right: 'read' | 'write' | 'delete', stream: string): boolean {
  const { writes, mayDelete } = RIGHTS[role];
  if (right === 'read') return true;
  if (right === 'delete' && !mayDelete) return false;
  return writes.some((prefix) => stream.startsWith(prefix));
}
