export interface Options {
  retries: number;
}

export function connect(url: string, options: Options): string {
  return `${url}#${options.retries}`;
}

export function closeAll(handles: string[]): boolean {
  return handles.every((handle) => handle.length > 0);
}
