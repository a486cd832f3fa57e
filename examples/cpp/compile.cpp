// Compiles the model on standard input into an artefact, with a function that the program brings:
//
//   ./compile model.sheafc < model.sheaf
//
// for a model such as
//
//   use "squash.sheaf"
//   fn main(x: f32[3]) -> f32[3] = squash(x)
#include <sheaf/compiler.hpp>

#include <iostream>
#include <iterator>

static std::optional<sheaf::UsedFile> find(const std::string &used, const std::string & /*by*/) {
  if (used != "squash.sheaf")
    return std::nullopt; // then it is looked for in the library of layers
  return sheaf::UsedFile{used, "fn squash(x: f32[n]) -> f32[n] = x / (1.0 + abs(x))\n"};
}

int main(int argc, char **argv) try {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " ARTEFACT < SOURCE\n";
    return 2;
  }
  sheaf::CompileOptions options;
  options.text = std::string(std::istreambuf_iterator<char>(std::cin), {});
  options.name = "standard input";
  options.resolve = find;
  options.seed = 1;
  std::vector<sheaf::Diagnostic> warnings;
  sheaf::Model model = sheaf::compile(options, &warnings);
  for (const sheaf::Diagnostic &warning : warnings)
    std::cerr << warning.text;
  sheaf::save(model, argv[1]);
  std::cout << model.entry() << " of " << model.name() << "\n";
  return 0;
} catch (const sheaf::CompileError &error) {
  std::cerr << error.text();
  return 1;
} catch (const sheaf::Error &error) {
  std::cerr << "error: " << error.what() << "\n";
  return 1;
}
