// Builds a model of trees without a text, shows it as one, and compiles it into an artefact:
//
//   ./build sum.sheafc
//
// Places are lines of this file: with --wrong the compiler finds fault with one of them.
#include <sheaf/builder.hpp>

#include <iostream>
#include <string>

/// The sum of a tree's vectors, each node's weighed by w.
static sheaf::Source weighedSum(bool wrong) {
  sheaf::ModelBuilder b("build.cpp");
  auto vector = b.tensor(sheaf::f32, {"n"}), tree = b.named("Tree");
  b.dim("n", b.number(3));
  b.data("Tree", {{"Leaf", {{"x", vector}}}, {"Node", {{"left", tree}, {"right", tree}}}});
  b.param("w", b.tensor(sheaf::f32, {"n"}), "constant", {b.number(0.5)});

  auto sum = [&](const char *of, sheaf::Place at = std::source_location::current()) {
    return b.call("total", {b.name(of, at)}, at);
  };
  auto node = b.binary(SHEAF_MUL, b.binary(SHEAF_ADD, sum("l"), sum("r")), b.name("w"));
  b.fn("total", {{"t", tree}}, vector,
       b.match(b.name("t"), {{b.construct("Leaf", {b.bind("x")}), b.name("x")},
                             {b.construct("Node", {b.bind("l"), b.bind("r")}), node}}));
  b.fn("main", {{"t", tree}}, wrong ? b.tensor(sheaf::f32, {4}) : vector, sum("t"));
  return std::move(b).finish();
}

int main(int argc, char **argv) try {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " ARTEFACT | --wrong\n";
    return 2;
  }
  sheaf::CompileOptions options;
  options.source = weighedSum(argv[1] == std::string("--wrong"));
  std::cout << options.source->text();
  sheaf::save(sheaf::compile(options), argv[1]);
  return 0;
} catch (const sheaf::CompileError &error) {
  std::cerr << error.text();
  return 1;
} catch (const sheaf::Error &error) {
  std::cerr << "error: " << error.what() << "\n";
  return 1;
}
