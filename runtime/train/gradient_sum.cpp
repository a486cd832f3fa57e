#include "runtime/train/gradient_sum.h"

#include "runtime/device/device.h"
#include "runtime/model/param_matrix.h"
#include "runtime/session/session.h"
#include "runtime/train/gradient_rows.h"

#include <algorithm>

namespace sheaf::rt {

GradientSum::GradientSum(const Model &model) : model_(model) {
  take();
  used_ = 0;
}

GradientSum::GradientSum(Session &session) : GradientSum(session.model()) { session_ = &session; }

GradientSum::~GradientSum() {
  for (const std::unique_ptr<Node> &node : nodes_)
    drop(*node);
}

/// Gives back its memory on the device.
void GradientSum::drop(const Node &node) {
  for (const ParamGradient &sum : node.sums)
    if (sum.at.kind == FloatsAt::Buffer)
      session_->dropBuffer(sum.at.buffer);
}

GradientSum::Node &GradientSum::take() {
  if (used_ == nodes_.size()) {
    auto node = std::make_unique<Node>();
    node->sums.resize(model_.params.size());
    node->bytes.resize(model_.params.size());
    nodes_.push_back(std::move(node));
  }
  Node &node = *nodes_[used_++];
  node.height = 0;
  return node;
}

/// Memory for the sum of a parameter, zero.
void GradientSum::make(Node &node, size_t param) {
  ParamGradient &sum = node.sums[param];
  if (sum.at.kind != FloatsAt::None || node.bytes[param])
    return;
  const ParamDesc &desc = model_.params[param];
  auto bytes = static_cast<size_t>(tensorGranules(desc.shape, desc.dtype) * kGranuleBytes);
  if (session_) {
    sum.at = FloatsAt::inBuffer(session_->makeBuffer(bytes, "sums of gradients"));
    return;
  }
  node.bytes[param] = allocateAligned(bytes);
  sum.data = reinterpret_cast<float *>(node.bytes[param].get());
}

/// Two parts share a node, and nodes of equal height become one.
void GradientSum::reserve(size_t parts) {
  size_t nodes = used_ + nodesFor(parts);
  size_t used = used_;
  while (used_ < nodes)
    take();
  used_ = used;
  for (size_t i = 0; session_ && i < nodes; ++i)
    for (size_t param = 0; param < model_.params.size(); ++param)
      if (session_->trains(param))
        make(*nodes_[i], param);
}

void GradientSum::keepOnly(size_t parts) {
  while (nodes_.size() > nodesFor(parts)) {
    drop(*nodes_.back());
    nodes_.pop_back();
  }
  if (nodes_.empty()) { // the sum of none
    take();
    used_ = 0;
  }
}

/// Adds gradients to sums where they are, or clears these there.
void GradientSum::submit(std::span<const ParamGradient> to,
                         std::span<const ParamGradient> gradients, bool adds) {
  std::vector<ParamPiece> pieces;
  std::vector<UpdateOperands> operands(gradients.size());
  constexpr int64_t floatsAPiece = 16 << 10;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const ParamGradient &gradient = gradients[i];
    if (gradient.kind == ParamGradient::None)
      continue;
    operands[i].kind = adds ? UpdateKind::Add : UpdateKind::Clear;
    operands[i].value = to[i].at;
    operands[i].gradient = gradient.where();
    auto [rows, columns] = matrixOf(model_.params[i]);
    bool some = gradient.kind == ParamGradient::Rows;
    int64_t count = some ? static_cast<int64_t>(gradient.rows.size()) : rows;
    int64_t step = std::max<int64_t>(1, floatsAPiece / std::max<int64_t>(1, columns));
    for (int64_t begin = 0; begin < count; begin += step)
      pieces.push_back({static_cast<uint32_t>(i), begin, std::min(begin + step, count),
                        some ? gradient.rows.data() : nullptr});
  }
  Instruction update = Update{pieces, operands};
  session_->device().run({&update, 1});
}

void GradientSum::addTo(Node &node, std::span<const ParamGradient> gradients) {
  for (size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].kind != ParamGradient::None)
      make(node, i);
  if (session_)
    submit(node.sums, gradients, /*adds=*/true);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const ParamGradient &gradient = gradients[i];
    if (gradient.kind == ParamGradient::None)
      continue;
    ParamGradient &sum = node.sums[i];
    if (!session_)
      forEachRow(model_.params[i], gradient, [&](int64_t begin, int64_t size) {
        float *to = sum.data + begin;
        const float *from = gradient.data + begin;
        for (int64_t j = 0; j < size; ++j)
          to[j] += from[j];
      });
    if (gradient.kind == ParamGradient::Dense || sum.kind == ParamGradient::Dense) {
      sum.kind = ParamGradient::Dense;
      sum.rows.clear();
      continue;
    }
    sum.kind = ParamGradient::Rows;
    std::vector<uint32_t> rows;
    std::set_union(sum.rows.begin(), sum.rows.end(), gradient.rows.begin(), gradient.rows.end(),
                   std::back_inserter(rows));
    sum.rows = std::move(rows);
  }
}

/// A part by itself is 0 + its gradients: no sum holds a -0, so adding 0 changes none.
void GradientSum::add(std::span<const ParamGradient> gradients) {
  if (isOpen_) {
    addTo(hasPieces_ ? *nodes_[used_ - 1] : take(), gradients);
    hasPieces_ = true;
  } else if (used_ > 0 && nodes_[used_ - 1]->height == 0) {
    Node &before = *nodes_[used_ - 1];
    addTo(before, gradients);
    before.height = 1;
    joinEqual();
  } else {
    addTo(take(), gradients);
  }
}

/// The last node becomes part of the one before it.
void GradientSum::join() {
  Node &right = *nodes_[--used_], &left = *nodes_[used_ - 1];
  addTo(left, right.sums);
  left.height = std::max(left.height, right.height) + 1;
  clear(right);
}

void GradientSum::joinEqual() {
  while (used_ > 1 && nodes_[used_ - 1]->height == nodes_[used_ - 2]->height)
    join();
}

void GradientSum::joinAll() {
  while (used_ > 1)
    join();
}

void GradientSum::close() {
  isOpen_ = hasPieces_ = false;
  joinEqual();
}

std::span<const ParamGradient> GradientSum::gradients() {
  joinAll();
  return nodes_[0]->sums;
}

void GradientSum::show() {
  for (ParamGradient &sum : nodes_[0]->sums)
    if (sum.at.kind == FloatsAt::Buffer && sum.kind != ParamGradient::None)
      sum.data = reinterpret_cast<float *>(session_->device().showBuffer(sum.at.buffer).data());
}

void GradientSum::clear(Node &node) {
  if (session_)
    submit(node.sums, node.sums, /*adds=*/false);
  for (size_t i = 0; i < node.sums.size(); ++i) {
    ParamGradient &sum = node.sums[i];
    if (!session_)
      forEachRow(model_.params[i], sum,
                 [&](int64_t begin, int64_t size) { std::fill_n(sum.data + begin, size, 0.0F); });
    sum.kind = ParamGradient::None;
    sum.rows.clear();
  }
}

void GradientSum::clear() {
  for (; used_ > 0; --used_)
    clear(*nodes_[used_ - 1]);
  isOpen_ = hasPieces_ = false;
}

} // namespace sheaf::rt
