//===- cold_start.cpp - The first result of a process ---------------------===//
//
// cold_start MODEL.sheafc RUNS WORD...: starts RUNS processes, one after the other, that open an
// artefact with libsheaf_runtime and run one instance made of these words; prints the median time
// from before a process is started to its first result, and what that is made of. The file stays in
// the machine's cache; nothing else is warm.
//
// The model takes a list<token>, or a type with a constructor of a token and one of two of itself:
// the words are then joined from the right. Other fields are 0.
//
//===----------------------------------------------------------------------===//
#include "sheaf/sheaf.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

/// Of a clock that all processes share: nanoseconds.
int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * int64_t{1000000000} + time.tv_nsec;
}

struct Times {
  int64_t main, loaded, result;
};

/// A constructor with one field of type `part`, or two, and any of int; -1 if there is none.
int constructorWith(const sheaf::Model &model, sheaf::Type type, sheaf_kind kind, sheaf::Type part,
                    int count) {
  for (size_t c = 0; c < sheaf_type_constructor_count(model.get(), type); ++c) {
    int found = 0;
    bool others = false;
    for (size_t f = 0; f < sheaf_type_field_count(model.get(), type, c); ++f) {
      sheaf::Type field = sheaf_type_field_type(model.get(), type, c, f);
      bool wanted =
          kind == SHEAF_DATA ? field == part : sheaf_type_kind(model.get(), field) == kind;
      found += wanted;
      others |= !wanted && sheaf_type_kind(model.get(), field) != SHEAF_INT;
    }
    if (found == count && !others)
      return static_cast<int>(c);
  }
  return -1;
}

/// The instance that words make.
sheaf::Value makeInstance(sheaf::Batch &batch, const std::vector<std::string> &words) {
  const sheaf::Model &model = batch.model();
  sheaf::Type type = model.argumentType(0);
  auto token = [&](sheaf::Type of, const std::string &word) {
    return batch.makeToken(of, model.token(word, sheaf_type_vocabulary(model.get(), of)));
  };
  std::vector<sheaf::Value> values;
  if (sheaf_type_kind(model.get(), type) == SHEAF_LIST) {
    for (const std::string &word : words)
      values.push_back(token(sheaf_type_child(model.get(), type, 0), word));
    return batch.makeList(type, values);
  }
  int leaf = constructorWith(model, type, SHEAF_TOKEN, type, 1);
  int node = constructorWith(model, type, SHEAF_DATA, type, 2);
  if (leaf < 0 || node < 0)
    throw sheaf::Error(SHEAF_INVALID,
                       "the model takes neither a list of tokens nor a tree of them");
  auto make = [&](int constructor, auto &&child) {
    std::vector<sheaf::Value> fields;
    auto c = static_cast<size_t>(constructor);
    for (size_t f = 0; f < sheaf_type_field_count(model.get(), type, c); ++f) {
      sheaf::Type field = sheaf_type_field_type(model.get(), type, c, f);
      fields.push_back(sheaf_type_kind(model.get(), field) == SHEAF_INT ? batch.makeInt(field, 0)
                                                                        : child(field));
    }
    return batch.makeData(type, c, fields);
  };
  auto leafOf = [&](const std::string &word) {
    return make(leaf, [&](sheaf::Type field) { return token(field, word); });
  };
  sheaf::Value whole = leafOf(words.back());
  for (size_t i = words.size() - 1; i-- > 0;) {
    sheaf::Value first = leafOf(words[i]);
    bool left = true;
    whole = make(node, [&](sheaf::Type) { return std::exchange(left, false) ? first : whole; });
  }
  return whole;
}

int child(const char *path, const std::vector<std::string> &words, int out) {
  Times times;
  times.main = now();
  sheaf::Model model(path);
  times.loaded = now();
  sheaf::Batch batch(model);
  batch.add({makeInstance(batch, words)});
  sheaf::Result result = sheaf::Session().run(batch);
  if (!result.error(0).empty())
    throw sheaf::Error(SHEAF_INVALID, result.error(0));
  times.result = now();
  return write(out, &times, sizeof times) == sizeof times ? 0 : 1;
}

/// Starts this program again as a child. Returns when it was started, and its times.
std::pair<int64_t, Times> start(char **argv, int argc) {
  int ends[2];
  if (pipe(ends) != 0)
    throw sheaf::Error(SHEAF_INVALID, "no pipe");
  std::string out = std::to_string(ends[1]);
  std::vector<char *> words(argv, argv + argc);
  words[2] = const_cast<char *>("0");
  words.insert(words.begin() + 3, out.data());
  words.push_back(nullptr);
  pid_t id;
  int64_t begin = now();
  if (posix_spawn(&id, "/proc/self/exe", nullptr, nullptr, words.data(), environ) != 0)
    throw sheaf::Error(SHEAF_INVALID, "the machine starts no more processes");
  close(ends[1]);
  Times times;
  bool complete = read(ends[0], &times, sizeof times) == sizeof times;
  close(ends[0]);
  int status = 0;
  waitpid(id, &status, 0);
  if (!complete || status != 0)
    throw sheaf::Error(SHEAF_INVALID, "a process failed");
  return {begin, times};
}

double median(std::vector<int64_t> nanoseconds) {
  std::sort(nanoseconds.begin(), nanoseconds.end());
  size_t half = nanoseconds.size() / 2;
  int64_t twice = nanoseconds[half] + nanoseconds[(nanoseconds.size() - 1) / 2];
  return static_cast<double>(twice) * 0.5e-6;
}

int run(int argc, char **argv) {
  // RUNS 0 is a child, whose next argument is where its times go.
  int runs = argc > 3 ? std::atoi(argv[2]) : -1;
  if (runs == 0 && argc > 4)
    return child(argv[1], {argv + 4, argv + argc}, std::atoi(argv[3]));
  if (runs < 1) {
    std::fprintf(stderr, "usage: %s MODEL.sheafc RUNS WORD...\n", argv[0]);
    return 2;
  }
  std::vector<int64_t> all, starting, loading, running;
  for (int i = 0; i < runs; ++i) {
    auto [begin, times] = start(argv, argc);
    all.push_back(times.result - begin);
    starting.push_back(times.main - begin);
    loading.push_back(times.loaded - times.main);
    running.push_back(times.result - times.loaded);
  }
  std::printf("first result of a process: %.2f ms, median of %d (%.2f to %.2f)\n", median(all),
              runs, static_cast<double>(*std::min_element(all.begin(), all.end())) * 1e-6,
              static_cast<double>(*std::max_element(all.begin(), all.end())) * 1e-6);
  std::printf("  start, dynamic linking %8.2f ms\n  opening the artefact   %8.2f ms\n"
              "  session, first run     %8.2f ms\n",
              median(starting), median(loading), median(running));
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
