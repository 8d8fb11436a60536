/** What a person names to be fetched. */
export interface PullSource {
  readonly owner: string;
  readonly repo: string;
  /** A file of the repository, or a quant label. */
  readonly pick?: string;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$/;

/**
 * Reads `owner/repo[:pick]`; an address of a repository's page is taken as well.
 * @throws Error in words.
 */
export function parseSource(text: string): PullSource {
  const plain = text.trim().replace(/^(?:https?:\/\/)?(?:huggingface\.co|hf\.co)\//, '');
  const colon = plain.indexOf(':');
  const path = colon < 0 ? plain : plain.slice(0, colon);
  const pick = colon < 0 ? '' : plain.slice(colon + 1);
  const [owner = '', repo = '', ...more] = path.replace(/\/$/, '').split('/');
  const sound = (name: string) => NAME.test(name) && !name.includes('..');
  if (!sound(owner) || !sound(repo) || more.length > 0) {
    throw new Error(
      `"${text}" names no repository. Write it as OWNER/REPO, or OWNER/REPO:FILE, or OWNER/REPO:Q4_K_M.`,
    );
  }
  return { owner, repo, ...(pick === '' ? {} : { pick }) };
}
