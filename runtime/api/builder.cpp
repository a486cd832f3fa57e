// Values that belong to no batch.
#include "runtime/api/options.h"
#include "runtime/api/values.h"

#include <utility>

using namespace sheaf;
using namespace sheaf::api;

namespace {

/// Makes values with the builder, which is locked.
template <typename Make>
sheaf_status make(sheaf_value_builder *builder, sheaf_value *first, Make makes) {
  return guarded([&] {
    std::lock_guard<std::mutex> lock(given(builder, "builder").mutex);
    given(first, "first");
    *first = makes(ValueBuilder(builder->store));
  });
}

template <typename T> std::span<const T> spanOf(const T *first, size_t count, const char *what) {
  if (count)
    given(first, what);
  return {first, count};
}

} // namespace

sheaf_status sheaf_builder_create(sheaf_model *model, sheaf_value_builder **builder) {
  return guarded([&] {
    given(builder, "builder");
    *builder = new sheaf_value_builder(given(model, "model").model);
  });
}

void sheaf_builder_release(sheaf_value_builder *builder) { delete builder; }

sheaf_status sheaf_builder_numbers(sheaf_value_builder *builder, sheaf_type type,
                                   const DLTensor *numbers, sheaf_value *first) {
  return make(builder, first,
              [&](ValueBuilder values) { return values.numbers(type, given(numbers, "numbers")); });
}

sheaf_status sheaf_builder_tensors(sheaf_value_builder *builder, sheaf_type type,
                                   const DLTensor *const *tensors, size_t count,
                                   sheaf_value *first) {
  return make(builder, first,
              [&](ValueBuilder values) { return values.tensors(type, tensors, count); });
}

sheaf_status sheaf_builder_unstack(sheaf_value_builder *builder, sheaf_type type,
                                   const DLTensor *stack, sheaf_value *first) {
  return make(builder, first,
              [&](ValueBuilder values) { return values.unstack(type, given(stack, "stack")); });
}

sheaf_status sheaf_builder_lists(sheaf_value_builder *builder, sheaf_type type,
                                 sheaf_value elements, const uint64_t *offsets, size_t count,
                                 sheaf_value *first) {
  return make(builder, first,
              [&](ValueBuilder values) { return values.lists(type, elements, offsets, count); });
}

sheaf_status sheaf_builder_tuples(sheaf_value_builder *builder, sheaf_type type,
                                  const sheaf_value *parts, size_t part_count, size_t count,
                                  sheaf_value *first) {
  return make(builder, first, [&](ValueBuilder values) {
    return values.tuples(type, spanOf(parts, part_count, "parts"), count);
  });
}

sheaf_status sheaf_builder_data(sheaf_value_builder *builder, sheaf_type type, size_t constructor,
                                const sheaf_value *fields, size_t field_count, size_t count,
                                sheaf_value *first) {
  return make(builder, first, [&](ValueBuilder values) {
    return values.data(type, constructor, spanOf(fields, field_count, "fields"), count);
  });
}

sheaf_status sheaf_builder_select(sheaf_value_builder *builder, sheaf_value from,
                                  const uint64_t *which, size_t count, sheaf_value *first) {
  return make(builder, first, [&](ValueBuilder values) {
    return values.select(from, spanOf(which, count, "which"));
  });
}

sheaf_status sheaf_builder_preorder(sheaf_value_builder *builder, sheaf_type type,
                                    const sheaf_preorder *written, size_t count,
                                    sheaf_value *first) {
  return make(builder, first, [&](ValueBuilder values) {
    given(written, "written");
    return values.preorder(type, known(written, "sheaf_preorder"), count);
  });
}

sheaf_status sheaf_builder_take(sheaf_value_builder *builder, const sheaf_values *other,
                                sheaf_value from, size_t count, sheaf_value *first) {
  return make(builder, first, [&](ValueBuilder values) {
    return values.take(given(other, "other").store, from, count);
  });
}

sheaf_status sheaf_builder_instances(sheaf_value_builder *builder, const sheaf_value *arguments,
                                     size_t argument_count, size_t count, const int64_t *ids) {
  return guarded([&] {
    std::lock_guard<std::mutex> lock(given(builder, "builder").mutex);
    ValueBuilder(builder->store)
        .instances(spanOf(arguments, argument_count, "arguments"), count, ids);
  });
}

sheaf_status sheaf_builder_finish(sheaf_value_builder *builder, sheaf_values **values) {
  return guarded([&] {
    std::lock_guard<std::mutex> lock(given(builder, "builder").mutex);
    given(values, "values");
    auto fresh = std::make_unique<sheaf_values>();
    ValueStore next(builder->store.model);
    fresh->store = std::make_shared<ValueStore>(std::exchange(builder->store, std::move(next)));
    *values = fresh.release();
  });
}

void sheaf_values_release(sheaf_values *values) { delete values; }

size_t sheaf_values_size(const sheaf_values *values) {
  return values ? values->store->instances.size() : 0;
}

size_t sheaf_values_bytes(const sheaf_values *values) {
  if (!values)
    return 0;
  const ValueStore &store = *values->store;
  int64_t read = store.file ? store.file->dataset.heap().bytes() : 0;
  return static_cast<size_t>(store.heap.bytes() + read);
}
