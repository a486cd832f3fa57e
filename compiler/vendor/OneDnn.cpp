//===- OneDnn.cpp - Products by oneDNN ------------------------------------===//
#include "compiler/vendor/Plain.h"
#include "runtime/model/library.h"

#include <dnnl.hpp>

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace sheaf::vendor {
namespace {

using Memory = dnnl::memory;

/// More rows are computed in several calls.
constexpr int64_t kMostRows = 1024;

const dnnl::engine &engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

/// What a run of a primitive needs beside it; of one run at a time.
struct Call {
  std::unordered_map<int, Memory> arguments;
  dnnl::stream stream{engine()};
};

/// A primitive is made for a number of rows, when so many are first seen.
struct Primitive {
  dnnl::matmul matmul;
  Memory::desc rows, out, scratch;
  const Memory *weights;
  mutable std::atomic<Call *> spare{nullptr}; ///< of the last run

  ~Primitive() { delete spare.load(); }
};

Memory::desc rowsForm(int64_t m, int64_t columns, int64_t stride) {
  return {{m, columns}, Memory::data_type::f32, Memory::dims{stride, 1}};
}

Memory::desc biasForm(const rt::ProductShape &shape) {
  return {{1, shape.n}, Memory::data_type::f32, Memory::format_tag::ab};
}

/// With the weights in the form that the library likes most. Throws what it refuses.
dnnl::matmul::primitive_desc makeDescription(const rt::ProductShape &shape, int64_t m,
                                             bool biasTanh) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (biasTanh) {
    dnnl::post_ops tanh;
    tanh.append_eltwise(1, dnnl::algorithm::eltwise_tanh, 0, 0);
    attributes.set_post_ops(tanh);
  }
  Memory::desc rows = rowsForm(m, shape.k, shape.aStride),
               out = rowsForm(m, shape.n, shape.cStride);
  Memory::desc any({shape.k, shape.n}, Memory::data_type::f32, Memory::format_tag::any);
  dnnl::matmul::desc description = biasTanh ? dnnl::matmul::desc(rows, any, biasForm(shape), out)
                                            : dnnl::matmul::desc(rows, any, out);
  return {description, attributes, engine()};
}

class Product : public rt::LibraryProduct {
public:
  Product(const rt::ProductShape &shape, const float *weights, const float *bias)
      : shape_(shape), plain_(weights, weights + shape.k * shape.n) {
    if (bias)
      bias_.assign(bias, bias + shape.n);
    run = [](const rt::LibraryProduct *self, int64_t m, const float *a, float *c) {
      static_cast<const Product *>(self)->runRows(m, a, c);
    };
    destroy = [](rt::LibraryProduct *self) { delete static_cast<Product *>(self); };
    choose = nullptr;
    primitive(16);
  }
  ~Product() {
    for (auto &entry : primitives_)
      delete entry.load();
  }

private:
  void runRows(int64_t m, const float *a, float *c) const {
    for (int64_t row = 0; row < m; row += kMostRows) {
      int64_t some = std::min(kMostRows, m - row);
      const float *from = a + row * shape_.aStride;
      float *to = c + row * shape_.cStride;
      try {
        execute(primitive(some), from, to);
      } catch (const std::exception &) {
        plainProduct(shape_, some, from, plain_.data(), to);
      }
    }
  }

  void execute(const Primitive &with, const float *a, float *c) const {
    std::unique_ptr<Call> call(with.spare.exchange(nullptr));
    if (!call)
      call = makeCall(with);
    call->arguments.at(DNNL_ARG_SRC).set_data_handle(const_cast<float *>(a));
    call->arguments.at(DNNL_ARG_DST).set_data_handle(c);
    with.matmul.execute(call->stream, call->arguments);
    call->stream.wait();
    // Another thread may have left its own meanwhile.
    call.reset(with.spare.exchange(call.release()));
  }

  std::unique_ptr<Call> makeCall(const Primitive &with) const {
    auto call = std::make_unique<Call>();
    call->arguments = {{DNNL_ARG_SRC, Memory(with.rows, engine(), nullptr)},
                       {DNNL_ARG_WEIGHTS, *with.weights},
                       {DNNL_ARG_DST, Memory(with.out, engine(), nullptr)},
                       {DNNL_ARG_SCRATCHPAD, Memory(with.scratch, engine())}};
    if (!bias_.empty())
      call->arguments.insert({DNNL_ARG_BIAS, Memory(biasForm(shape_), engine(), bias_.data())});
    return call;
  }

  const Primitive &primitive(int64_t m) const {
    std::atomic<const Primitive *> &entry = primitives_[static_cast<size_t>(m - 1)];
    if (const Primitive *made = entry.load(std::memory_order_acquire))
      return *made;
    std::lock_guard lock(mutex_);
    if (!entry.load())
      entry.store(make(m).release(), std::memory_order_release);
    return *entry.load();
  }

  std::unique_ptr<const Primitive> make(int64_t m) const {
    dnnl::matmul::primitive_desc chosen = makeDescription(shape_, m, !bias_.empty());
    auto made = std::make_unique<Primitive>();
    made->matmul = dnnl::matmul(chosen);
    made->rows = rowsForm(m, shape_.k, shape_.aStride);
    made->out = rowsForm(m, shape_.n, shape_.cStride);
    made->scratch = chosen.scratchpad_desc();
    made->weights = &inForm(chosen.weights_desc());
    return made;
  }

  /// The weights in a form; few are ever asked for.
  const Memory &inForm(const Memory::desc &form) const {
    for (const Memory &known : forms_)
      if (known.get_desc() == form)
        return known;
    Memory plain({{shape_.k, shape_.n}, Memory::data_type::f32, Memory::format_tag::ab}, engine(),
                 plain_.data());
    Memory packed(form, engine());
    dnnl::stream stream(engine());
    dnnl::reorder(plain, packed).execute(stream, plain, packed);
    stream.wait();
    forms_.push_back(std::move(packed));
    return forms_.back();
  }

  const rt::ProductShape shape_;
  mutable std::vector<float> plain_, bias_; // oneDNN takes nothing const
  mutable std::mutex mutex_;                // of what stands below
  mutable std::array<std::atomic<const Primitive *>, kMostRows> primitives_{};
  mutable std::list<Memory> forms_;
};

bool accepts(const rt::ProductShape *shape) try {
  if (shape->k <= 0 || shape->n <= 0)
    return false;
  makeDescription(*shape, 1, false);
  return true;
} catch (const dnnl::error &) {
  return false;
}

rt::LibraryProduct *makeTanhProduct(const rt::ProductShape *shape, const float *weights,
                                    const float *bias) try {
  return new Product(*shape, weights, bias);
} catch (const std::exception &) {
  return nullptr;
}

rt::LibraryProduct *makeProduct(const rt::ProductShape *shape, const float *weights) {
  return makeTanhProduct(shape, weights, nullptr);
}

} // namespace
} // namespace sheaf::vendor

const sheaf::rt::Library *sheaf_library() {
  static const std::string version = [] {
    const dnnl_version_t *v = dnnl_version();
    return std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
           std::to_string(v->patch);
  }();
  static const sheaf::rt::Library library = {"oneDNN",
                                             version.c_str(),
                                             sheaf::vendor::accepts,
                                             sheaf::vendor::makeProduct,
                                             sheaf::vendor::makeTanhProduct,
                                             nullptr};
  return &library;
}
