export type ThemeChoice = 'system' | 'light' | 'dark';
const KEY = 'berth.theme';
const dark = matchMedia('(prefers-color-scheme: dark)');

/** Light or dark: as the system has it, unless somebody chose. */
class Theme {
  choice = $state<ThemeChoice>(stored());
  system = $state<'light' | 'dark'>(dark.matches ? 'dark' : 'light');

  constructor() {
    dark.addEventListener('change', () => {
      this.system = dark.matches ? 'dark' : 'light';
      this.apply();
    });
    this.apply();
  }

  get shown(): 'light' | 'dark' {
    return this.choice === 'system' ? this.system : this.choice;
  }

  choose(choice: ThemeChoice): void {
    this.choice = choice;
    this.apply();
    try {
      localStorage.setItem(KEY, choice);
    } catch {
      // Storage is blocked: the choice lasts as long as the page.
    }
  }

  apply(): void {
    document.documentElement.dataset['theme'] = this.shown;
  }
}

function stored(): ThemeChoice {
  try {
    const value = localStorage.getItem(KEY);
    return value === 'light' || value === 'dark' ? value : 'system';
  } catch {
    return 'system';
  }
}

export const theme = new Theme();
