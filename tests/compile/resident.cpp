// How much memory a session takes of a process, as the machine counts it: beyond what the process
// held when the session began.
//
//   resident COMPILER MODEL ENTRY DATA FORMAT run|train BATCH LIMIT
//
// LIMIT is in bytes; 0: none. Prints bytes, and how many instances failed.
#include <sheaf/compiler.hpp>
#include <sheaf/train.hpp>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <malloc.h>
#include <numeric>
#include <string>

namespace {

/// A line of what the system says of this process, in bytes.
std::int64_t bytesOf(const std::string &name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == name + ":") {
      std::int64_t kilobytes = 0;
      status >> kilobytes;
      return kilobytes * 1024;
    }
  throw sheaf::Error(SHEAF_INVALID, name + " is not told");
}

/// What compiling took is given back, and the peak begins anew.
std::int64_t begin() {
  malloc_trim(0);
  std::ofstream peak("/proc/self/clear_refs");
  peak << "5" << std::flush;
  if (!peak)
    throw sheaf::Error(SHEAF_INVALID, "the peak cannot be reset");
  return bytesOf("VmRSS");
}

std::uint64_t run(const sheaf::Model &model, const sheaf::Values &values, std::uint64_t batch,
                  std::uint64_t limit) {
  std::uint64_t failed = 0;
  sheaf::Session session(1, limit);
  for (std::uint64_t first = 0; first < values.size(); first += batch) {
    std::vector<std::uint64_t> which(std::min(batch, values.size() - first));
    std::iota(which.begin(), which.end(), first);
    sheaf::Batch instances(model);
    instances.add(values, which);
    sheaf::Result result = session.run(instances);
    for (std::size_t i = 0; i < which.size(); ++i)
      failed += !result.error(i).empty();
  }
  return failed;
}

std::uint64_t train(const sheaf::Model &model, const sheaf::Values &values, std::uint64_t batch,
                    std::uint64_t limit) {
  std::uint64_t failed = 0;
  sheaf::Session session(1, limit);
  sheaf_training_options options{};
  options.epochs = 2;
  options.batch = batch;
  sheaf::Training training(session, model, values, options);
  for (const sheaf_training_event &event : training)
    if (event.kind == SHEAF_TRAINING_STEP)
      failed += event.failed;
  return failed;
}

} // namespace

int main(int argc, char **argv) try {
  if (argc != 9)
    return 2;
  const std::string file = argv[4], format = argv[5], what = argv[6];
  std::uint64_t batch = std::strtoull(argv[7], nullptr, 10);
  std::uint64_t limit = std::strtoull(argv[8], nullptr, 10);
  sheaf::check(sheaf_compiler_open(argv[1]));
  sheaf::CompileOptions options;
  options.path = argv[2];
  options.entry = argv[3];
  options.wordsOf = file;
  options.wordsFormat = format;
  options.training = what == "train";
  options.without = {"memoise-records"}; // the data are the same lines again and again
  sheaf::Model model = sheaf::compile(options);
  sheaf_read_options reading{};
  reading.format = format.c_str();
  sheaf::Values values = sheaf::readValues(model, file, reading);

  std::int64_t before = begin();
  std::uint64_t failed = 0;
  try {
    failed = (what == "train" ? train : run)(model, values, batch, limit);
  } catch (const sheaf::Error &error) { // the limit holds no instance: nor may it be passed
    std::cerr << error.what() << "\n";
    failed = values.size();
  }
  std::cout << bytesOf("VmHWM") - before << " " << failed << "\n";
  return 0;
} catch (const sheaf::CompileError &error) {
  std::cerr << error.text();
  return 3;
} catch (const std::exception &error) {
  std::cerr << error.what() << "\n";
  return 3;
}
