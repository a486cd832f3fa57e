#include "runtime/io/weight_shards.h"

#include "runtime/io/json.h"
#include "runtime/io/weights_path.h"
#include "runtime/model/error.h"

#include <fmt/format.h>
#include <fstream>
#include <map>
#include <string_view>
#include <utility>

namespace sheaf::io {

namespace {

/// Which file has each tensor, as an index says.
class IndexReader {
public:
  explicit IndexReader(std::string_view text) : json_(text, 8) {}

  void run() {
    bool hasMap = false;
    expect(JsonEvent::BeginObject, "an object");
    while (json_.next() == JsonEvent::Key) {
      if (json_.text() != "weight_map") {
        json_.skip(json_.next());
        continue;
      }
      if (std::exchange(hasMap, true))
        fail("'weight_map' is there twice");
      readMap();
    }
    json_.next();
    if (!hasMap)
      throw TextError{0, "no index of weights: it has no 'weight_map'"};
  }

  std::map<std::string, std::string> fileOf;

private:
  [[noreturn]] void fail(std::string message) {
    throw TextError{json_.offset(), std::move(message)};
  }

  void expect(JsonEvent wanted, const std::string &what) {
    JsonEvent event = json_.next();
    if (event != wanted)
      fail(fmt::format("expected {}, found {}", what, describeEvent(event, json_.text())));
  }

  void readMap() {
    expect(JsonEvent::BeginObject, "an object of names of files as weight_map");
    while (json_.next() == JsonEvent::Key) {
      std::string tensor(json_.text());
      if (fileOf.contains(tensor))
        fail(fmt::format("the tensor {} is there twice", io::quoted(tensor)));
      expect(JsonEvent::String,
             fmt::format("the name of the file of tensor {}", io::quoted(tensor)));
      std::string file(json_.text());
      if (file.empty() || file == "." || file == ".." ||
          file.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
        fail(fmt::format("the file of tensor {} is {}, which is no name of a file beside the index",
                         io::quoted(tensor), io::quoted(file)));
      fileOf[tensor] = file;
    }
  }

  JsonPull json_;
};

} // namespace

bool isShardIndex(const std::string &path) {
  if (!isFile(path))
    return false;
  if (path.ends_with(".index.json")) // whatever is in it should be one
    return true;
  std::ifstream stream(path, std::ios::binary);
  // A safetensors file begins with the length of its header, whose bytes may be those of blanks and
  // a brace; but eight bytes of a length have a zero among them, and text has none.
  char start[8] = {};
  stream.read(start, sizeof start);
  std::string_view text(start, static_cast<size_t>(stream.gcount()));
  if (text.find('\0') != std::string_view::npos)
    return false;
  stream.clear();
  stream.seekg(0);
  char first = 0;
  stream >> first; // reads over blanks
  return first == '{';
}

std::vector<SafetensorsFile> openShards(const std::string &index) {
  SourceText text = readSource(index);
  IndexReader reader(text.text);
  try {
    reader.run();
  } catch (const TextError &error) {
    TextPlace place = PlaceFinder(text.text).at(error.offset);
    failAt(text.name, place.line, place.column, error.message);
  }
  std::map<std::string, std::vector<std::string>> tensorsOf;
  for (const auto &[tensor, file] : reader.fileOf)
    tensorsOf[file].push_back(tensor);
  std::vector<SafetensorsFile> files;
  files.reserve(tensorsOf.size());
  std::map<std::string, const std::string *> firstOf;
  for (const auto &[name, tensors] : tensorsOf) {
    std::string path = fileBeside(index, name);
    if (!isFile(path))
      throw PlacedError(
          {index},
          fmt::format("the file {} is not there, which has tensor {}{}", quoted(name, 200),
                      quoted(tensors.front(), 200),
                      tensors.size() == 1 ? "" : fmt::format(" and {} more", tensors.size() - 1)));
    SafetensorsFile &file = files.emplace_back(SafetensorsFile::open(path));
    for (const std::string &tensor : tensors)
      if (!file.find(tensor))
        throw PlacedError({index},
                          fmt::format("tensor {} should be in {}, which has no such tensor",
                                      quoted(tensor, 200), quoted(name, 200)));
    for (const FileTensor &tensor : file.tensors())
      if (auto [it, isNew] = firstOf.try_emplace(tensor.name, &name); !isNew)
        throw PlacedError({index}, fmt::format("tensor {} is in two files, {} and {}",
                                               quoted(tensor.name, 200), quoted(*it->second, 200),
                                               quoted(name, 200)));
  }
  return files;
}

} // namespace sheaf::io
