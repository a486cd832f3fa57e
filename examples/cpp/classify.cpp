// The example of examples/c in C++, with the structs that
//
//   sheaf build models/treelstm.sheaf --vocab v.txt --weights w.safetensors -o tree.sheafc
//       --emit-header treelstm.h
//
// writes, and all sentences of standard input as one batch.
#include "treelstm.h"

#include <sheaf/sheaf.hpp>

#include <cstdio>
#include <iostream>
#include <sstream>

static treelstm::Tree treeOf(const std::vector<std::string> &words, const sheaf::Model &model) {
  auto leaf = [&](const std::string &word) {
    return treelstm::Tree{treelstm::Tree::Leaf{model.token(word)}};
  };
  treelstm::Tree tree = leaf(words.back());
  for (std::size_t i = words.size() - 1; i-- > 0;)
    tree = treelstm::Tree{treelstm::Tree::Node{leaf(words[i]), std::move(tree)}};
  return tree;
}

int main(int argc, char **argv) try {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " MODEL.sheafc\n";
    return 2;
  }
  sheaf::Model model(argv[1]);
  sheaf::Batch batch(model);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;)
      words.push_back(word);
    if (!words.empty())
      treelstm::add(batch, {treeOf(words, model)});
  }
  sheaf::Session session;
  sheaf::Result result = session.run(batch);
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (!result.error(i).empty()) {
      std::cerr << "error: instance " << i << ": " << result.error(i) << "\n";
      return 1;
    }
    treelstm::Result scores = treelstm::result(result, i);
    for (std::size_t j = 0; j < scores.elements.size(); ++j)
      std::printf("%s%.9g", j ? " " : "", scores.elements[j]);
    std::printf("\n");
  }
  return 0;
} catch (const sheaf::Error &error) {
  std::cerr << "error: " << error.what() << "\n";
  return 1;
}
