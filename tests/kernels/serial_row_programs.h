// Backwards of norms as loops: values along each row, and reductions across the rows of a part, which one kernel of serial
// rows computes together (`serial`) and two regions one after the other.
#pragma once

#include <fmt/format.h>

#include <string>

namespace cxxinductor::tests {

struct SerialRows {
  int parts, rows, columns;
  const char* dtype;
  bool centred = true;  // a second reduction across rows, and a second one along them
  bool late = false;    // an operand that only the result wants
};

inline std::string norm_backward(const SerialRows& shape, bool serial) {
  const std::string sizes = fmt::format("{}, {}, {}", shape.parts, shape.rows, shape.columns);
  std::string text = fmt::format(R"(program @p on DEVICE (@x: {0}[{1}], @g: {0}[{1}], @w: {0}[{2}], @m: f32[{3}, {4}]{5}) {{
    output @y: {0}[{1}]
    output @t: f32[{3}, {4}]
    output @a: f32[{3}, {2}]
)",
                                 shape.dtype, sizes, shape.columns, shape.parts, shape.rows, shape.late ? fmt::format(", @l: {}[{}]", shape.dtype, sizes) : "");
  if (shape.centred) text += fmt::format("    output @b: f32[{}, {}]\n", shape.parts, shape.columns);
  const std::string space = fmt::format("b < {}, {}j < {}, c < {}", shape.parts, serial ? "serial " : "", shape.rows, shape.columns);
  const std::string loads = R"(
      %x0 = load @x[b, j, c]
      %x = cast<f32>(%x0)
      %g0 = load @g[b, j, c]
      %g = cast<f32>(%g0)
      %m = load @m[b, j]
      %h = sub(%x, %m)
)";
  const std::string along = fmt::format(
      R"(
      %w0 = load @w[c]
      %w = cast<f32>(%w0)
      %p = mul(%g, %w)
      %q = mul(%p, %h)
      %z = reduce<sum>(%q) over c
      {}
      %f = mul(%h, %z)
      %e = sub(%d, %f)
      {}
      %y = cast<{}>(%r)
      store @t[b, j] = %z
      store @y[b, j, c] = %y
)",
      shape.centred ? "%s = reduce<sum>(%p) over c\n      %d = sub(%p, %s)" : "%two = constant f32(2.0)\n      %d = mul(%p, %two)",
      shape.late ? "%l0 = load @l[b, j, c]\n      %l = cast<f32>(%l0)\n      %r = add(%e, %l)" : "%r = mul(%e, %z)", shape.dtype);
  std::string across = R"(
      %u = mul(%g, %h)
      %a = reduce<sum>(%u) over j
      store @a[b, c] = %a
)";
  if (shape.centred) across += "      %b = reduce<sum>(%g) over j\n      store @b[b, c] = %b\n";
  text += serial ? fmt::format("region @n over {} {{{}{}{}}}", space, loads, along, across)
                 : fmt::format("region @n over {0} {{{1}{2}}}\nregion @k over {0} {{{1}{3}}}", space, loads, along, across);
  return text + (shape.centred ? "\nreturn @y, @t, @a, @b\n}" : "\nreturn @y, @t, @a\n}");
}

// As graphs bring it: values along rows, of which one is only there to be summed up across rows and one is an output,
// and three sums, a region each.
inline std::string norm_backward_in_regions(int rows, int columns) {
  return fmt::format(R"(program @p on DEVICE (@x: f32[{0}, {1}], @g: f32[{0}, {1}], @w: f32[{1}]) {{
    temporary @u: f32[{0}, {1}]
    output @y: f32[{0}, {1}]
    output @a: f32[{1}]
    output @b: f32[{1}]
    output @d: f32[{1}]
    region @rows over i < {0}, j < {1} {{
      %x = load @x[i, j]
      %g = load @g[i, j]
      %w = load @w[j]
      %p = mul(%g, %w)
      %q = mul(%p, %x)
      %z = reduce<sum>(%q) over j
      %e = mul(%x, %z)
      %y = sub(%p, %e)
      store @y[i, j] = %y
      %u = mul(%g, %x)
      store @u[i, j] = %u
    }}
    region @a over i < {0}, j < {1} {{
      %u = load @u[i, j]
      %a = reduce<sum>(%u) over i
      store @a[j] = %a
    }}
    region @b over i < {0}, j < {1} {{
      %g = load @g[i, j]
      %b = reduce<sum>(%g) over i
      store @b[j] = %b
    }}
    region @d over i < {0}, j < {1} {{
      %y = load @y[i, j]
      %d = reduce<sum>(%y) over i
      store @d[j] = %d
    }}
    return @y, @a, @b, @d
  }})",
                     rows, columns);
}

}  // namespace cxxinductor::tests
