//===- Store.h - What is kept from one start to the next --------*- C++ -*-===//
//
// Values by key in a SQLite file of this user's, shared by all processes. It is a cache: whatever
// happens to it, only time is lost, and no member throws. docs/store.md says what is trusted.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_STORE_STORE_H
#define SHEAF_COMPILER_STORE_STORE_H

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sheaf::store {

struct Options {
  std::string directory; ///< empty: none
  /// Most bytes of values; what was not used for longest goes first.
  uint64_t limit = uint64_t{256} << 20;
};

/// `$XDG_CACHE_HOME/sheaf`, else `$HOME/.cache/sheaf`; empty when there is neither.
std::string defaultDirectory();

/// What a compilation had of a store.
struct Use {
  std::string directory; ///< empty: none was asked for
  size_t found = 0;      ///< values that were there
  size_t made = 0;       ///< values that were not
  size_t kept = 0;       ///< of these, written
  /// Why it was not used, or no longer; empty: it was.
  std::string problem;
  /// What its owner should know: sentences.
  std::vector<std::string> warnings;
};

using Bytes = std::vector<uint8_t>;
/// By key: a text that names its value with certainty, such as a SHA-256.
using Values = std::map<std::string, Bytes>;

class Store {
public:
  explicit Store(Options options);
  ~Store();

  /// Those that are there, all of them whole. They count as used.
  Values find(const std::vector<std::string> &keys);
  /// The same, but what is damaged is left for find(), and nothing counts as used.
  Values peek(const std::vector<std::string> &keys);
  /// Writes new values, in the place of others if there is no room.
  void keep(const Values &values);
  /// Whether all that was kept stands in the store's file from now on, on the disk, and no longer
  /// in the log beside it. Waits for the disk.
  bool writeBack();

  const Use &use() const { return use_; }

private:
  struct Connection;
  struct Found;

  /// Calls `work` with an open database. A damaged one is set aside, and the work is done again
  /// with a new one; what else goes wrong becomes a problem, and from then on nothing is done.
  void guarded(const std::function<void(Connection &)> &work);

  Options options_;
  Use use_;
  bool knowsLog_ = false; ///< it was looked at for damage
};

} // namespace sheaf::store

#endif // SHEAF_COMPILER_STORE_STORE_H
