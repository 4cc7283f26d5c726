// Writes src/abi/vgpu-abi.ts from native/include/vgpu_abi.h, or with --check fails when they disagree. The header keeps
// to fixed widths and natural alignment, so its layout can be computed here; test/abi/vgpu-abi.test.ts has a compiler
// confirm it.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as prettier from 'prettier';

const header = fileURLToPath(new URL('../native/include/vgpu_abi.h', import.meta.url));
const target = fileURLToPath(new URL('../src/abi/vgpu-abi.ts', import.meta.url));

/** Structures and enumerations whose constants have another name than their own. */
const NAMES = { vgpu_limits: 'LIMITS_LAYOUT', vgpu_usage: 'USAGE_LAYOUT', vgpu_object: 'SHARED_OBJECT' };
const WIDTHS = { uint8_t: 1, char: 1, uint16_t: 2, uint32_t: 4, uint64_t: 8 };

const camelCase = (name) => name.toLowerCase().replace(/_([a-z0-9])/g, (_, letter) => letter.toUpperCase());
const constantName = (name) => NAMES[name] ?? name.replace(/^vgpu_/, '').toUpperCase();

/** A number of C, or one shifted by another; null for anything else. */
function numberOf(text) {
  const match = /^\(?(0x[0-9a-f]+|\d+)(?:u|ull)?(?: << (\d+))?\)?$/i.exec(text.trim());
  return match === null ? null : BigInt(match[1]) << BigInt(match[2] ?? 0);
}

const literal = (value) => (value > BigInt(Number.MAX_SAFE_INTEGER) ? `0x${value.toString(16)}n` : value.toString());

function readHeader(text) {
  const source = text.replace(/\/\*[\s\S]*?\*\//g, '');
  const numbers = new Map();
  const lines = [];
  for (const [, name, value] of source.matchAll(/^#define VGPU_(\w+) (.+)$/gm)) {
    if (name === 'ABI_H') continue;
    const number = numberOf(value);
    if (number !== null) numbers.set(`VGPU_${name}`, number);
    else if (!/^"[^"]*"$/.test(value)) throw new Error(`vgpu_abi.h: ${name} is neither a number nor a text: ${value}`);
    lines.push(`export const ${name} = ${number === null ? value : literal(number)};`);
  }
  for (const [, name, body] of source.matchAll(/^enum (\w+) \{([^}]*)\}/gm)) {
    const members = body.split(',').flatMap((member) => (member.trim() === '' ? [] : [member.split('=')]));
    const entries = members.map(([member, value]) => {
      const number = numberOf(value ?? '');
      if (number === null) throw new Error(`vgpu_abi.h: ${member.trim()} has no plain number`);
      numbers.set(member.trim(), number);
      // VGPU_LOG_NONE is `none`.
      return `${camelCase(member.trim().split('_').slice(2).join('_'))}: ${literal(number)}`;
    });
    lines.push(`export const ${constantName(name)} = { ${entries.join(', ')} } as const;`);
  }
  const structs = new Map();
  const texts = [];
  for (const [, name, body] of source.matchAll(/^struct (\w+) \{([^}]*)\};/gm)) {
    let offset = 0;
    let alignment = 1;
    const fields = [];
    for (const declaration of body.split(';').flatMap((part) => (part.trim() === '' ? [] : [part.trim()]))) {
      const match = /^(?:struct )?(\w+) (\w+)((?:\[\w+\])*)$/.exec(declaration);
      const type =
        match === null ? undefined : (structs.get(match[1]) ?? { size: WIDTHS[match[1]], alignment: WIDTHS[match[1]] });
      if (type?.size === undefined)
        throw new Error(`vgpu_abi.h: ${name} has a field that is not understood: ${declaration}`);
      const dimensions = [...match[3].matchAll(/\[(\w+)\]/g)].map(([, one]) =>
        Number(numbers.get(one) ?? numberOf(one)),
      );
      const size = dimensions.reduce((product, dimension) => product * dimension, type.size);
      alignment = Math.max(alignment, type.alignment);
      offset = Math.ceil(offset / type.alignment) * type.alignment;
      if (!match[2].startsWith('reserved')) fields.push(`${camelCase(match[2])}: ${offset}`);
      if (match[1] === 'char') texts.push(`${constantName(name).toLowerCase()}_${match[2]}: ${size}`);
      offset += size;
    }
    const size = Math.ceil(offset / alignment) * alignment;
    structs.set(name, { size, alignment });
    lines.push(`export const ${constantName(name)} = { ${[...fields, `structSize: ${size}`].join(', ')} } as const;`);
  }
  lines.push(`/** Sizes of the fields that hold text. */`);
  lines.push(
    `export const TEXT_BYTES = { ${texts.map((text) => camelCase(text.split(':')[0]) + ':' + text.split(':')[1]).join(', ')} } as const;`,
  );
  return lines;
}

const head = `/**
 * The numbers of native/include/vgpu_abi.h: byte offsets of fields, sizes of structures, constants. Written by \`npm run abi\`; do not edit.
 */
`;
const options = { ...(await prettier.resolveConfig(target)), parser: 'typescript' };
const generated = await prettier.format(head + readHeader(readFileSync(header, 'utf8')).join('\n'), options);
if (process.argv.includes('--check')) {
  if (readFileSync(target, 'utf8') !== generated) {
    console.error('src/abi/vgpu-abi.ts is not what native/include/vgpu_abi.h says: run npm run abi');
    process.exitCode = 1;
  }
} else {
  writeFileSync(target, generated);
}
