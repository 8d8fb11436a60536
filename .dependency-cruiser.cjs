/** The table of DESIGN, section 2: who may import whom. */
const only = (name, from, allowed, comment) => ({
  name,
  comment,
  severity: 'error',
  from: { path: from, pathNot: '\\.spec\\.ts$' },
  to: { path: '^(libs|apps|schema|test)/', pathNot: allowed },
});

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    only('domain-imports-nothing', '^libs/domain/', ['^libs/domain/'], 'domain imports nothing of ours'),
    {
      name: 'pure-libs-import-no-package',
      comment: 'domain and placement have no I/O: no node built-in, no package',
      severity: 'error',
      from: { path: '^libs/(domain|placement)/src/', pathNot: '\\.spec\\.ts$|/testing/' },
      to: { dependencyTypes: ['core', 'npm', 'npm-dev', 'npm-optional'] },
    },
    only(
      'placement-imports-domain',
      '^libs/placement/',
      ['^libs/(domain|placement)/'],
      'placement imports only domain',
    ),
    only('events-imports-domain', '^libs/events/', ['^libs/(domain|events)/'], 'events imports only domain'),
    only(
      'event-node-stands-alone',
      '^apps/event-node/',
      ['^apps/event-node/'],
      'the embedded node imports nothing of ours',
    ),
    only(
      'runtime-imports-domain',
      '^libs/runtime/',
      ['^libs/(domain|runtime)/'],
      'runtime imports only domain',
    ),
    only(
      'projector',
      '^apps/projector/',
      ['^apps/projector/', '^libs/(domain|events|runtime)/', '^schema/'],
      'projector: domain, events, runtime, schema',
    ),
    only(
      'worker-agent',
      '^apps/worker-agent/',
      ['^apps/worker-agent/', '^libs/(domain|events|runtime)/'],
      'worker-agent: domain, events, runtime',
    ),
    only('api', '^apps/api/', ['^apps/api/', '^libs/', '^schema/'], 'api: the libs and the tables'),
    only(
      'cli',
      '^apps/cli/',
      ['^apps/cli/', '^libs/(domain|runtime)/'],
      'cli: the admin REST client and the settings table',
    ),
    only(
      'dashboard',
      '^apps/dashboard/',
      ['^apps/dashboard/', '^libs/(domain|placement)/', '^apps/api/src/admin/.+\\.view\\.ts$'],
      "dashboard: the pure libs and the shapes of the api's answers",
    ),
    {
      name: 'dashboard-runs-no-code-of-the-api',
      severity: 'error',
      from: { path: '^apps/dashboard/' },
      to: { path: '^apps/api/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'nest-outside-the-data-plane',
      comment: '/v1 takes no framework detour',
      severity: 'error',
      from: { path: '^apps/api/src/gateway/', pathNot: '\\.spec\\.ts$' },
      to: { path: 'node_modules/@nestjs/' },
    },
    {
      name: 'sql-in-repositories',
      comment: 'kysely and pg only where views are written or read',
      severity: 'error',
      from: {
        pathNot:
          '^(apps/projector/|apps/api/src/admin/|apps/cli/src/up/|schema/|test/|libs/events/src/runner/)|\\.spec\\.ts$',
      },
      to: { path: 'node_modules/(kysely|pg)/' },
    },
    {
      name: 'one-event-log-client',
      comment:
        'all access to the log goes through libs/events; the node borrows the generated protocol classes',
      severity: 'error',
      from: { pathNot: '^(libs/events/|apps/event-node/|test/)|\\.spec\\.ts$' },
      to: { path: 'node_modules/@eventstore/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(dist|node_modules)/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.base.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['source', 'types', 'import', 'node', 'default'],
    },
  },
};
