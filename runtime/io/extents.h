//===- extents.h - Per-instance extents while one is read -------*- C++ -*-===//
//
// An extent name such as the n of `f32[n, 50]` means the same number in the whole instance. This
// remembers who said which number first. Extents that are expressions (`2*n`, `n+1`) are checked
// when the instance is complete. `?` is free.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_EXTENTS_H
#define SHEAF_RUNTIME_IO_EXTENTS_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf::io {

class ExtentBinder {
public:
  struct Binding {
    std::string name;
    int64_t value;
    std::string path; ///< where it was read first
  };

  /// `dims`: declared dims that expressions may name; may be null, must outlive this.
  explicit ExtentBinder(const std::map<std::string, int64_t> *dims = nullptr) : dims_(dims) {}

  void clear();

  /// The binding of a plain name, null when it has none yet.
  const Binding *find(std::string_view name) const;
  void bind(std::string name, int64_t value, std::string path);

  /// Notes that an expression has a value, to be checked by finish().
  void expect(std::string expression, int64_t value, std::string path);

  /// Notes an extent that the data do not tell: that of an axis inside an empty one. Returns what
  /// is known of it by now, else 0.
  int64_t unknown(const std::string &name, std::string path);

  /// Whether some extent was answered with 0 that is now known to be another number: then the
  /// instance must be read again (bindings stay).
  bool mustReread() const;
  void beginReread();

  /// Checks the expressions; returns the message of the first that does not hold, or empty.
  std::string finish() const;

  /// The value of an expression over bound names: + - * / (exact), brackets and integers.
  std::optional<int64_t> evaluate(std::string_view expression) const;

  static bool isPlainName(std::string_view name);

  std::optional<int64_t> valueOf(std::string_view name) const;

private:
  const std::map<std::string, int64_t> *dims_;
  std::vector<Binding> bound_;
  std::vector<Binding> expected_;
  std::vector<std::string> unknown_;
};

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_EXTENTS_H
