import { createHash, timingSafeEqual } from 'node:crypto';
import { NodeError } from '../errors.js';

/** Who calls. The roles are those that `$acl` names. */
export interface Principal {
  readonly name: string;
  readonly roles: ReadonlySet<string>;
}

export interface UserSecret {
  readonly name: string;
  readonly secret: string;
}

export const ADMINS = '$admins';

/** On an insecure node everybody may do everything, as on a real server. */
const EVERYBODY: Principal = { name: 'anonymous', roles: new Set([ADMINS]) };

/** Tells who calls by HTTP's basic authentication. */
export class Users {
  readonly #byName:
    ReadonlyMap<string, { readonly digest: Buffer; readonly principal: Principal }> | undefined;
  /** Headers that were right: a client sends the same one with every call. */
  readonly #known = new Map<string, Principal>();

  /** Without users the node is insecure. */
  constructor(users: readonly UserSecret[] | undefined) {
    this.#byName =
      users &&
      new Map(
        users.map(({ name, secret }) => [
          name,
          { digest: digestOf(secret), principal: { name, roles: new Set(rolesOf(name)) } },
        ]),
      );
  }

  authenticate(authorization: string | undefined): Principal {
    if (!this.#byName) return EVERYBODY;
    if (!authorization) throw refused('This node wants a user and a password, and the call carries none.');
    const known = this.#known.get(authorization);
    if (known) return known;
    const [scheme, encoded] = authorization.split(' ');
    if (scheme?.toLowerCase() !== 'basic' || !encoded)
      throw refused('Only basic authentication is understood.');
    const [name = '', ...rest] = Buffer.from(encoded, 'base64').toString('utf8').split(':');
    const user = this.#byName.get(name);
    // Compared even when the user is unknown, so that the time tells nothing.
    const right = timingSafeEqual(digestOf(rest.join(':')), user?.digest ?? digestOf(''));
    if (!user || !right) throw refused(`The password of user '${name}' is wrong, or there is no such user.`);
    this.#known.set(authorization, user.principal);
    return user.principal;
  }
}

const rolesOf = (name: string): readonly string[] => (name === 'admin' ? ['admin', ADMINS] : [name]);
const digestOf = (secret: string): Buffer => createHash('sha256').update(secret).digest();
const refused = (message: string): NodeError => new NodeError({ code: 'unauthenticated' }, message);
