/** `1 error`, `2 errors` */
export const countText = (number: number, what: string): string => `${number} ${what}${number === 1 ? "" : "s"}`;
