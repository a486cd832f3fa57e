//===- updates.h - Updates of parameters on processors ----------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_CPU_UPDATES_H
#define SHEAF_RUNTIME_CPU_UPDATES_H

#include "runtime/device/update.h"
#include "runtime/device/workers.h"
#include "runtime/model/model.h"
#include "runtime/model/value.h"

#include <functional>
#include <vector>

namespace sheaf::rt {

/// Memory beside rows, and what is done with it.
class Updates {
public:
  Updates(const Model &model, uint8_t *rows) : model_(model), rows_(rows) {}

  /// Never 0.
  uint32_t makeBuffer(uint64_t bytes);
  void dropBuffer(uint32_t buffer);
  std::span<uint8_t> buffer(uint32_t number);

  void run(const Reduce &reduce, Workers &workers);
  /// `pack(param, begin, end)` is called for rows that were changed, while they are near.
  void run(const Update &update, Workers &workers,
           const std::function<void(size_t, int64_t, int64_t)> &pack);

private:
  struct Buffer {
    AlignedBytes bytes;
    uint64_t size = 0;
  };
  float *at(const FloatsAt &floats);
  /// Calls `visit(begin, size)` for the runs of a piece, counted in floats.
  template <typename Visit> void visitRuns(const ParamPiece &piece, Visit visit) const;
  void forEach(std::span<const ParamPiece> pieces, Workers &workers,
               const std::function<void(size_t)> &work) const;

  const Model &model_;
  uint8_t *rows_;
  std::vector<Buffer> buffers_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_CPU_UPDATES_H
