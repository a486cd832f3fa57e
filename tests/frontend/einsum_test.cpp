//===- einsum_test.cpp - Sums of products by letters ----------------------===//

#include "compiler/frontend/ProgramGen.h"
#include "compiler/ir/Program.h"
#include "compiler/ops/Verify.h"
#include "tests/frontend/parsed.h"

#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

namespace sheaf {
namespace {

/// The Program of an expression, as text without places.
std::string programOf(const std::string &expression) {
  Parsed parsed("dim d = 4, h = 3, a = 2, b = 5\n"
                "param w : f32[d, h] = zeros\nparam v : f32[h, d] = zeros\n"
                "param z : f32[d, a, b] = zeros\n"
                "fn main(x: f32[n, d], u: f32[d], t: f32[n], q: f32[k, n, d], r: f32[k, m, d], "
                "s: f32[k, d]) = " +
                expression);
  mlir::DialectRegistry registry;
  ops::registerDialects(registry);
  mlir::MLIRContext context(registry);
  CheckedModule checked = check(parsed.module, {}, parsed.diags);
  mlir::OwningOpRef<mlir::ModuleOp> program;
  if (checked.ok)
    program = generateProgram(checked, context, "main", parsed.diags);
  if (!program)
    return expression + ": " + parsed.diags.render();
  std::string text;
  llvm::raw_string_ostream out(text);
  program->print(out);
  return text;
}

/// What is written by letters is what is written out, so it is packed, fused and differentiated
/// alike.
TEST(Einsum, IsTheFormThatIsWrittenOut) {
  const std::pair<const char *, const char *> same[] = {
      {"einsum(\"nd,dh->nh\", x, w)", "x @ w"},
      {"einsum(\"nd,hd->nh\", x, v)", "x @ transpose(v)"},
      {"einsum(\"dh,nd->nh\", w, x)", "x @ w"},
      {"einsum(\"nd,dh\", x, w)", "transpose(w) @ transpose(x)"},
      {"einsum(\"nd, dh -> hn\", x, w)", "transpose(w) @ transpose(x)"},
      {"einsum(\"d,dh->h\", u, w)", "u @ w"},
      {"einsum(\"hd,d->h\", v, u)", "v @ u"},
      {"einsum(\"d,hd->h\", u, v)", "v @ u"},
      {"einsum(\"dh,d->h\", w, u)", "u @ w"},
      {"einsum(\"d,d->\", u, u)", "dot(u, u)"},
      {"einsum(\"nd,nd->n\", x, x)", "sum(x * x, axis=1)"},
      {"einsum(\"nd->d\", x)", "sum(x, axis=0)"},
      {"einsum(\"nd->\", x)", "sum(sum(x, axis=1), axis=0)"},
      {"einsum(\"nd->nd\", x)", "x"},
      {"einsum(\"nd->dn\", x)", "transpose(x)"},
      {"einsum(\"nd,d->nd\", x, u)", "x * u"},
      {"einsum(\"nd,n->nd\", x, t)", "x * expand_dims(t, axis=1)"},
      {"einsum(\"n,d->nd\", t, u)", "expand_dims(t, axis=1) * u"},
      {"einsum(\"knd,kmd->knm\", q, r)", "q @ transpose(r)"},
      {"einsum(\"knd,dh->knh\", q, w)", "q @ w"},
      {"einsum(\"kd,knd->kn\", s, q)", "squeeze(q @ expand_dims(s, axis=2), axis=2)"},
      {"einsum(\"nd,dab->nab\", x, z)", "reshape(x @ reshape(z, d, a * b), n, a, b)"},
      {"einsum(\"nd,dh,h->n\", x, w, sum(v, axis=1))", "(x @ w) @ sum(v, axis=1)"},
  };
  for (auto [letters, written] : same)
    EXPECT_EQ(programOf(letters), programOf(written)) << letters;
}

} // namespace
} // namespace sheaf
