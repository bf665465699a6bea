import { defineConfig } from 'vite';

export default defineConfig({
  base: '/',
  clearScreen: false,
  logLevel: 'warn',
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: {
    target: 'es2021',
    assetsInlineLimit: 0, // the page's policy allows no data: addresses
    modulePreload: { polyfill: false },
    cssCodeSplit: true,
    reportCompressedSize: false,
    emptyOutDir: true,
  },
});
