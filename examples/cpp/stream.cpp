// Prints what a decoder writes, word by word while it runs: with the artefact and the structs that
//
//   sheaf build examples/decode.sheaf --vocab v.txt --weights w.safetensors -o decode.sheafc
//       --emit-header decode.h
//
// writes, and all sentences of standard input as one batch.
#include "decode.h"

#include <sheaf/sheaf.hpp>

#include <cstdio>
#include <iostream>
#include <sstream>

int main(int argc, char **argv) try {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " MODEL.sheafc\n";
    return 2;
  }
  sheaf::Model model(argv[1]);
  sheaf::Batch batch(model);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream stream(line);
    decode::Arguments sentence;
    for (std::string word; stream >> word;)
      sentence.words.push_back(model.token(word));
    decode::add(batch, sentence);
  }
  // Each sentence's words in order, those of several as they come.
  auto emitted = [&](std::int64_t sentence, const sheaf::View &word) {
    std::printf("%d %s\n", static_cast<int>(sentence), model.word(word.toInt()).c_str());
    std::fflush(stdout);
  };
  sheaf::Result result = sheaf::Session().run(batch, sheaf::Stop(), emitted);
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (!result.error(i).empty()) {
      std::cerr << "error: instance " << i << ": " << result.error(i) << "\n";
      return 1;
    }
    std::printf("%d = %.9g\n", static_cast<int>(i), decode::result(result, i).elements[0]);
  }
  return 0;
} catch (const sheaf::Error &error) {
  std::cerr << "error: " << error.what() << "\n";
  return 1;
}
