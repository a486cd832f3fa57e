/* Compiles a model in process and trains it:
 *
 *   cc train.c -o train -lsheaf_runtime
 *   ./train
 *
 * The model learns whether two numbers have the same sign. Then it tells how one score follows from
 * the numbers: gradients of an input, from a cotangent of a result that is no loss.
 */
#include <sheaf/compiler.h>
#include <sheaf/gradients.h>

#include <stdio.h>
#include <stdlib.h>

enum { kCount = 64, kBatch = 16, kEpochs = 100 };

static const char *const kModel = "dim h = 8\n"
                                  "param w : f32[2, h] = glorot\n"
                                  "param b : f32[h] = zeros\n"
                                  "param v : f32[h] = normal(0.5)\n"
                                  "fn score(x: f32[2]) -> f32 = dot(tanh(x @ w + b), v)\n"
                                  "fn loss(x: f32[2], same: f32) -> f32 =\n"
                                  "  bce_with_logits(score(x), same)\n";

static void check(sheaf_status status) {
  if (status == SHEAF_OK)
    return;
  fprintf(stderr, "error: %s\n", sheaf_error_message());
  exit(1);
}

static sheaf_model *compile(const char *entry, const sheaf_named_tensor *weights, size_t count) {
  sheaf_compile_options options = {sizeof options};
  options.text = kModel;
  options.entry = entry;
  options.training = 1;
  options.input_gradients = 1;
  options.seed = 3;
  options.tensors = weights;
  options.tensor_count = count;
  sheaf_model *model;
  check(sheaf_compile(&options, &model, NULL));
  return model;
}

/* Points and what is right of them, made once: instances that batches share. */
static sheaf_values *makeData(sheaf_model *model) {
  static float points[kCount][2], same[kCount];
  unsigned random = 1;
  for (int i = 0; i < kCount; ++i) {
    for (int j = 0; j < 2; ++j) {
      random = random * 1103515245u + 12345u;
      points[i][j] = (float)(random >> 16 & 1023) / 512 - 1;
    }
    same[i] = (points[i][0] > 0) == (points[i][1] > 0);
  }
  int64_t shape[] = {kCount, 2};
  DLTensor x = {points, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
  DLTensor y = {same, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0};
  sheaf_value_builder *builder;
  check(sheaf_builder_create(model, &builder));
  sheaf_value arguments[2];
  check(sheaf_builder_unstack(builder, sheaf_model_argument_type(model, 0), &x, &arguments[0]));
  check(sheaf_builder_unstack(builder, sheaf_model_argument_type(model, 1), &y, &arguments[1]));
  check(sheaf_builder_instances(builder, arguments, 2, kCount, NULL));
  sheaf_values *values;
  check(sheaf_builder_finish(builder, &values));
  sheaf_builder_release(builder);
  return values;
}

static double mean(const sheaf_result *losses) {
  DLManagedTensor *all;
  check(sheaf_result_stack(losses, NULL, 0, NULL, 0, &all));
  double sum = 0;
  for (int64_t i = 0; i < all->dl_tensor.shape[0]; ++i)
    sum += ((const float *)all->dl_tensor.data)[i];
  sum /= (double)all->dl_tensor.shape[0];
  all->deleter(all);
  return sum;
}

/* The mean loss of the last epoch. */
static double train(sheaf_session *session, sheaf_model *model) {
  sheaf_values *data = makeData(model);
  sheaf_batch *batch;
  check(sheaf_batch_create(model, &batch));
  sheaf_optimizer_options adam = {sizeof adam};
  adam.name = "adam";
  sheaf_optimizer *optimizer;
  check(sheaf_optimizer_create(session, model, &adam, &optimizer));
  double loss = 0;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    loss = 0;
    for (int begin = 0; begin < kCount; begin += kBatch) {
      uint64_t which[kBatch];
      for (int i = 0; i < kBatch; ++i)
        which[i] = (uint64_t)(begin + i);
      check(sheaf_batch_clear(batch));
      check(sheaf_batch_add_instances(batch, data, which, kBatch, NULL));
      sheaf_result *losses;
      check(sheaf_session_run(session, batch, &losses));
      sheaf_gradients *gradients;
      check(sheaf_session_backward(session, losses, NULL, 0, &gradients));
      check(sheaf_optimizer_step(optimizer, gradients, 0.02, 1.0 / kBatch, NULL));
      loss += mean(losses) * kBatch / kCount;
      sheaf_gradients_release(gradients);
      sheaf_result_release(losses);
    }
    if (epoch % 25 == 0)
      printf("epoch %d: loss %.3f\n", epoch, loss);
  }
  sheaf_optimizer_release(optimizer);
  sheaf_batch_release(batch);
  sheaf_values_release(data);
  return loss;
}

/* How the score of a point follows from it. */
static void explain(sheaf_session *session, sheaf_model *model, float *point) {
  int64_t two = 2, one = 1;
  DLTensor x = {point, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &two, NULL, 0};
  sheaf_batch *batch;
  sheaf_value value;
  check(sheaf_batch_create(model, &batch));
  check(sheaf_make_tensor(batch, sheaf_model_argument_type(model, 0), &x, &value));
  check(sheaf_batch_add(batch, &value, 1, 0));
  sheaf_result *scores, *ofPoint;
  check(sheaf_session_run(session, batch, &scores));
  float arrives = 1;
  DLTensor dy = {&arrives, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &one, NULL, 0};
  sheaf_cotangent cotangent = {NULL, 0, NULL, 0, &dy};
  sheaf_gradients *gradients;
  check(sheaf_session_backward(session, scores, &cotangent, 1, &gradients));
  check(sheaf_gradients_argument(gradients, 0, &ofPoint));
  DLManagedTensor *dx;
  check(sheaf_result_stack(ofPoint, NULL, 0, NULL, 0, &dx));
  const float *slope = dx->dl_tensor.data;
  printf("at (%g, %g) the score %s with x0 and %s with x1\n", (double)point[0], (double)point[1],
         slope[0] > 0 ? "grows" : "falls", slope[1] > 0 ? "grows" : "falls");
  dx->deleter(dx);
  sheaf_result_release(ofPoint);
  sheaf_gradients_release(gradients);
  sheaf_result_release(scores);
  sheaf_batch_release(batch);
}

int main(void) {
  sheaf_model *model = compile("loss", NULL, 0);
  sheaf_session *session;
  check(sheaf_session_create(NULL, &session));
  double loss = train(session, model);
  printf("trained: loss %.3f\n", loss);

  /* The same weights behind another function. */
  sheaf_named_tensor weights[8];
  DLManagedTensor *kept[8];
  size_t count = sheaf_model_weight_count(model);
  for (size_t i = 0; i < count; ++i) {
    weights[i].name = sheaf_model_weight_name(model, i);
    check(sheaf_session_weight(session, model, weights[i].name, &kept[i]));
    weights[i].tensor = &kept[i]->dl_tensor;
  }
  sheaf_model *score = compile("score", weights, count);
  float point[2] = {0.5f, 0.5f};
  explain(session, score, point);

  for (size_t i = 0; i < count; ++i)
    kept[i]->deleter(kept[i]);
  sheaf_session_release(session);
  sheaf_model_release(score);
  sheaf_model_release(model);
  return loss < 0.3 ? 0 : 1;
}
