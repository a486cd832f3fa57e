//===- progress.h - A progress bar on a terminal ----------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_PROGRESS_H
#define SHEAF_TOOLS_SHEAF_PROGRESS_H

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace sheaf::tool {

/// One line on standard error that is redrawn a few times a second while work goes on, and removed
/// at its end. Does nothing when standard error is not a terminal. One is shown at a time. The
/// environment's SHEAF_PROGRESS is `never` for none, and `always` for one that is drawn at each
/// step, however short the work.
class Progress {
public:
  /// `total`: how many steps there will be; 0: unknown.
  Progress(std::string title, int64_t total);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// `more` makes what the line ends with, when it is drawn.
  using Text = std::function<std::string()>;
  void step(int64_t steps = 1, const Text &more = {}) {
    done_ += steps;
    if (onTerminal_)
      draw(more);
  }

  /// Clears the line of whatever bar is shown, before something else is printed; it is drawn again
  /// when its work goes on.
  static void clear();

  /// What the line shows, `width` columns at most.
  static std::string line(const std::string &title, int64_t done, int64_t total, int width,
                          const std::string &more = "");

private:
  void draw(const Text &more);

  std::string title_;
  int64_t total_;
  int64_t done_ = 0;
  bool onTerminal_;
  bool everyStep_ = false;
  std::chrono::steady_clock::time_point next_;
};

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_PROGRESS_H
