// The structs that `sheaf build --emit-header` writes of data_types.sheaf, there and back.
#include "data_types.h"
#include "emits.h"
#include "tests/artefact/message_of.h"
#include "tests/deep.h"

#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <stdexcept>

namespace {

const std::string kData = SHEAF_MADE "/data_types.sheafc";

data_types::Arguments sample() {
  data_types::Arguments a;
  using Shape = data_types::Shape;
  a.shapes.push_back(Shape{Shape::Point{}});
  a.shapes.push_back(Shape{Shape::Circle{2.5, true}});
  std::vector<Shape> inner;
  inner.push_back(Shape{Shape::Point{}});
  inner.push_back(Shape{Shape::Circle{0.5, false}});
  a.shapes.push_back(Shape{Shape::Group{std::move(inner)}});
  a.pair = {7, {1, 0, 1}};
  a.rows = {{2, 3}, {1, 2, 3, 4, 5, 6}};
  a.mask = {{2}, {1, 0}};
  using Mark = data_types::Mark;
  a.marks = std::vector<Mark>(1); // by default the first constructor, of zeros
  a.marks.push_back(Mark{Mark::Dot{-3, 1.5, true}});
  a.marks.push_back(Mark{Mark::Shape{data_types::Shape{Shape::Circle{4, true}}}});
  return a;
}

data_types::Result runSample(const data_types::Arguments &a) {
  static sheaf::Model model(kData);
  sheaf::Batch batch(model);
  data_types::add(batch, a);
  return data_types::result(sheaf::Session().run(batch), 0);
}

TEST(GeneratedHeader, RoundTrip) {
  data_types::Arguments a = sample();
  data_types::Result result = runSample(a);
  auto &[shapes, pair, rows, mask, marks] = result;
  using Shape = data_types::Shape;
  ASSERT_EQ(shapes.size(), 3u);
  EXPECT_EQ(shapes[0].value.index(), 0u);
  EXPECT_EQ(std::get<Shape::Circle>(shapes[1].value).radius, 2.5);
  EXPECT_TRUE(std::get<Shape::Circle>(shapes[1].value).default_);
  const std::vector<Shape> &inner = *std::get<Shape::Group>(shapes[2].value).members;
  ASSERT_EQ(inner.size(), 2u);
  EXPECT_EQ(std::get<Shape::Circle>(inner[1].value).radius, 0.5);
  EXPECT_EQ(pair, a.pair);
  EXPECT_EQ(rows.shape, a.rows.shape);
  for (size_t i = 0; i < 6; ++i)
    EXPECT_EQ(rows.elements[i], 2 * a.rows.elements[i]);
  EXPECT_EQ(mask.elements, (std::vector<unsigned char>{1, 0}));
  using Mark = data_types::Mark;
  ASSERT_EQ(marks.size(), 3u);
  EXPECT_EQ(std::get<Mark::Dot>(marks[0].value).fields(), std::make_tuple(0, 0.0, false));
  EXPECT_EQ(std::get<Mark::Dot>(marks[1].value).fields(), std::make_tuple(-3, 1.5, true));
  const Shape &inside = *std::get<Mark::Shape>(marks[2].value).inner;
  EXPECT_EQ(std::get<Shape::Circle>(inside.value).radius, 4);
}

/// Every kind of type in one call, as `sample` has them, with struct and bulk values side by side.
TEST(GeneratedHeader, TheSameAsValuesInPreorder) {
  sheaf::Model model(kData);
  sheaf::Builder builder(model);
  auto type = [&](size_t argument) { return model.argumentType(argument); };
  sheaf::Preorder shapes, pair, marks;
  shapes.heads = {3, 0, 1, 2, 2, 0, 1};
  shapes.floats = {2.5, 0.5};
  shapes.numbers = {1, 0};
  pair.heads = {3};
  pair.numbers = {7, 1, 0, 1};
  marks.heads = {3, 0, 0, 1, 1};
  marks.numbers = {0, 0, -3, 1, 1};
  marks.floats = {0, 1.5, 4};
  std::vector<float> rows{1, 2, 3, 4, 5, 6};
  unsigned char mask[] = {1, 0};
  int64_t rowsShape[] = {1, 2, 3};
  DLTensor stack{rows.data(), {kDLCPU, 0}, 3, {kDLFloat, 32, 1}, rowsShape, nullptr, 0};
  DLTensor truths{mask, {kDLCPU, 0}, 1, {kDLBool, 8, 1}, rowsShape + 1, nullptr, 0};
  sheaf::Value numbers =
      builder.numbers(sheaf_type_child(model.get(), type(1), 0), std::vector<int8_t>{7});
  sheaf::Type bools = sheaf_type_child(model.get(), type(1), 1);
  sheaf::Value truth = builder.lists(
      bools,
      builder.numbers(sheaf_type_child(model.get(), bools, 0), std::vector<unsigned char>{1, 0, 9}),
      {0, 3});
  sheaf::Value arguments[] = {builder.preorder(type(0), shapes, 1),
                              builder.preorder(type(1), pair, 1), builder.unstack(type(2), stack),
                              builder.tensors(type(3), {&truths}),
                              builder.preorder(type(4), marks, 1)};
  builder.instances({arguments, arguments + 5}, 1);
  arguments[1] = builder.tuples(type(1), {numbers, truth}, 1);
  builder.instances({arguments, arguments + 5}, 1);
  sheaf::Batch batch(model);
  batch.add(builder.finish());
  sheaf::Result found = sheaf::Session().run(batch);
  data_types::Result expected = runSample(sample());
  for (size_t i = 0; i < 2; ++i) {
    auto [shapes2, pair2, rows2, mask2, marks2] = data_types::result(found, i);
    EXPECT_EQ(pair2, std::get<1>(expected));
    EXPECT_EQ(rows2.shape, std::get<2>(expected).shape);
    EXPECT_EQ(rows2.elements, std::get<2>(expected).elements);
    EXPECT_EQ(mask2.elements, std::get<3>(expected).elements);
    using Shape = data_types::Shape;
    ASSERT_EQ(shapes2.size(), 3u);
    EXPECT_EQ(std::get<Shape::Circle>(shapes2[1].value).radius, 2.5);
    const std::vector<Shape> &inner = *std::get<Shape::Group>(shapes2[2].value).members;
    ASSERT_EQ(inner.size(), 2u);
    EXPECT_FALSE(std::get<Shape::Circle>(inner[1].value).default_);
    using Mark = data_types::Mark;
    ASSERT_EQ(marks2.size(), 3u);
    EXPECT_EQ(std::get<Mark::Dot>(marks2[1].value).fields(), std::make_tuple(-3, 1.5, true));
    const Shape &inside = *std::get<Mark::Shape>(marks2[2].value).inner;
    EXPECT_EQ(std::get<Shape::Circle>(inside.value).radius, 4);
  }
}

TEST(GeneratedHeader, TypesAreMadeWithoutArguments) {
  data_types::Mark mark;
  EXPECT_EQ(std::get<data_types::Mark::Dot>(mark.value).fields(), std::make_tuple(0, 0.0, false));
  data_types::Arguments arguments;
  EXPECT_TRUE(arguments.marks.empty());
  EXPECT_EQ(arguments.pair, std::make_tuple(0, std::vector<unsigned char>()));
}

TEST(GeneratedHeader, DeepStructsTakeNoStack) {
  using Shape = data_types::Shape;
  data_types::Arguments a = sample();
  Shape deep{Shape::Point{}};
  for (int i = 0; i < sheaf::kDeep; ++i) {
    std::vector<Shape> one;
    one.push_back(std::move(deep));
    deep = Shape{Shape::Group{std::move(one)}};
  }
  a.shapes.clear();
  a.shapes.push_back(std::move(deep));
  data_types::Result result = runSample(a);
  size_t depth = 0;
  for (const Shape *s = &std::get<0>(result)[0]; s->value.index() == 2; ++depth)
    s = &(*std::get<Shape::Group>(s->value).members)[0];
  EXPECT_EQ(depth, size_t(sheaf::kDeep));
}

TEST(GeneratedHeader, TensorsInAnyLayout) {
  data_types::Arguments a = sample();
  sheaf::Model model(kData);
  sheaf::Batch batch(model);
  sheaf::Encoder encoder(batch);
  // Transposed, with a gap, and backwards: the same elements as those of `sample`.
  float elements[] = {0, 0, 4, 1, -1, 5, 2, -1, 6, 3, -1};
  int64_t shape[] = {2, 3}, strides[] = {-1, 3};
  DLTensor rows{elements + 1, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 8};
  std::vector<sheaf::Value> arguments = {encoder.encode(a.shapes, model.argumentType(0)),
                                         encoder.encode(a.pair, model.argumentType(1)),
                                         batch.makeTensor(model.argumentType(2), rows),
                                         encoder.encode(a.mask, model.argumentType(3)),
                                         encoder.encode(a.marks, model.argumentType(4))};
  batch.add(arguments);
  data_types::Result result = data_types::result(sheaf::Session().run(batch), 0);
  EXPECT_EQ(std::get<2>(result).elements, (std::vector<float>{2, 4, 6, 8, 10, 12}));

  auto message = [&](const std::function<void()> &f) { return messageOf(f, SHEAF_INVALID); };
  const unsigned char truths[] = {1, 0, 1};
  arguments[3] = batch.makeTensor(model.argumentType(3), {3}, truths);
  EXPECT_EQ(message([&] { batch.add(arguments); }).substr(0, 15), "the extent n of");
  rows.dtype.code = kDLInt;
  EXPECT_NE(message([&] { batch.makeTensor(model.argumentType(2), rows); }).find("dtype"),
            std::string::npos);
  rows.dtype.code = kDLFloat;
  shape[1] = 4;
  EXPECT_NE(message([&] { batch.makeTensor(model.argumentType(2), rows); }).find("axis 1"),
            std::string::npos);
  rows.ndim = 1;
  EXPECT_NE(message([&] { batch.makeTensor(model.argumentType(2), rows); }).find("axes"),
            std::string::npos);
  rows.device.device_type = static_cast<DLDeviceType>(2);
  EXPECT_NE(message([&] { batch.makeTensor(model.argumentType(2), rows); }).find("CPU"),
            std::string::npos);
}

TEST(GeneratedHeader, Emits) {
  sheaf::Model model(SHEAF_MADE "/emits.sheafc");
  EXPECT_EQ(sheaf_type_kind(model.get(), model.resultType()), SHEAF_TENSOR);
  EXPECT_STREQ(sheaf_type_text(model.get(), model.emittedType()), "Event");
  EXPECT_EQ(model.findType("Event"), model.emittedType());
  EXPECT_EQ(sheaf_model_find_type(model.get(), "(f32[2], list<Event>)"), SHEAF_NO_TYPE);
  EXPECT_EQ(sheaf_model_emitted_type(nullptr), SHEAF_NO_TYPE);

  sheaf::Batch batch(model);
  for (int64_t n : {2, 0})
    emits::add(batch, {n, {{2}, {1, -1}}});
  sheaf::Result results = sheaf::Session().run(batch);
  EXPECT_EQ(emits::result(results, 0).elements, (std::vector<float>{4, -4}));
  EXPECT_EQ(emits::result(results, 1).elements, (std::vector<float>{1, -1}));
  emits::Emitted emitted = emits::emitted(results, 0);
  ASSERT_EQ(emitted.size(), 3u);
  EXPECT_EQ(emitted[0].value.index(), 0u);
  const auto &seen = std::get<1>(emitted[2].value);
  EXPECT_EQ(seen.number, 1);
  EXPECT_EQ(seen.row.elements, (std::vector<float>{2, -2}));
  EXPECT_EQ(emits::emitted(results, 1).size(), 1u);

  // And while it runs: one instance's in order, each with the instance's id.
  std::vector<std::pair<int64_t, size_t>> told;
  sheaf::Session().run(batch, sheaf::Stop(), [&](int64_t id, const sheaf::View &value) {
    told.emplace_back(id, sheaf::Decoder::decode<emits::Event>(value).value.index());
  });
  std::sort(told.begin(), told.end());
  EXPECT_EQ(told, (std::vector<std::pair<int64_t, size_t>>{{0, 0}, {0, 1}, {0, 1}, {1, 0}}));
  std::vector<std::pair<int64_t, size_t>> whole;
  whole.swap(told);
  // By an engine, too.
  sheaf::Engine engine(model);
  sheaf::Batch requests(model);
  for (int64_t n : {2, 0})
    emits::add(requests, {n, {{2}, {1, -1}}});
  int64_t ended = 0;
  auto tell = [&](int64_t id, const sheaf::View &value) {
    told.emplace_back(id, sheaf::Decoder::decode<emits::Event>(value).value.index());
    if (told.size() == 2)
      throw std::runtime_error("enough");
  };
  engine.submit(requests, [&](int64_t, const sheaf::Result &) { ++ended; }, {}, tell);
  int64_t thrown = 0;
  for (bool more = true; more;) {
    try {
      more = engine.step();
    } catch (const std::runtime_error &) {
      ++thrown;
    }
  }
  std::sort(told.begin(), told.end());
  EXPECT_EQ(told, whole);
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(thrown, 1);

  auto throwing = [](int64_t, const sheaf::View &) { throw std::runtime_error("enough"); };
  EXPECT_THROW(sheaf::Session().run(batch, sheaf::Stop(), throwing), std::runtime_error);
  // A client from before has a shorter struct.
  sheaf_run_options older{};
  older.size = offsetof(sheaf_run_options, emit);
  sheaf_result *plain = nullptr;
  sheaf::Session session;
  ASSERT_EQ(sheaf_session_run_with(session.get(), batch.get(), &older, &plain), SHEAF_OK);
  EXPECT_EQ(sheaf_result_size(plain), 2u);
  sheaf_result_release(plain);
  EXPECT_EQ(messageOf([&] { results.emitted(2); }, SHEAF_INVALID), "the result has no instance 2");

  sheaf::Model other(kData);
  EXPECT_EQ(other.emittedType(), SHEAF_NO_TYPE);
  sheaf::Batch none(other);
  data_types::add(none, sample());
  sheaf::Result silent = sheaf::Session().run(none);
  EXPECT_EQ(messageOf([&] { silent.emitted(0); }, SHEAF_INVALID), "the model emits nothing");
}

} // namespace
