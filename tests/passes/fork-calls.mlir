// RUN: sheaf-opt --fork-calls=remarks=1 %s 2>&1 | FileCheck %s
// RUN: sheaf-opt --fork-calls=without=fork-calls %s | FileCheck %s --check-prefix=OFF

// OFF-NOT: sheaf.fork

// CHECK-DAG: remark: the call of node may read and runs beside what follows
// CHECK-DAG: remark: the calls of this map may read and run side by side

// The first of two calls that do not need each other; nothing follows the second.
// CHECK-LABEL: func.func @node
// CHECK: call @node(%{{.*}}) {sheaf.fork}
// CHECK: call @node(%{{.*}}) :
func.func @node(%x: tensor<f32>) -> f64 {
  %s = sheaf.read %x : (tensor<f32>) -> f64
  %a = func.call @node(%x) : (tensor<f32>) -> f64
  %b = func.call @node(%x) : (tensor<f32>) -> f64
  %r = arith.addf %a, %b : f64
  return %r : f64
}

// The second call needs the first.
// CHECK-LABEL: func.func @chain
// CHECK-NOT: sheaf.fork
func.func @chain(%x: tensor<f32>) -> f64 {
  %a = func.call @leaf(%x) : (tensor<f32>) -> tensor<f32>
  %b = func.call @node(%a) : (tensor<f32>) -> f64
  return %b : f64
}

// Nothing of it reads.
// CHECK-LABEL: func.func @quiet
// CHECK-NOT: sheaf.fork
func.func @quiet(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %a = func.call @leaf(%x) : (tensor<f32>) -> tensor<f32>
  %b = func.call @leaf(%x) : (tensor<f32>) -> tensor<f32>
  return %a, %b : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @leaf
func.func @leaf(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// A body becomes a function of what it uses; constants are made inside.
// CHECK: func.func private @items.map(%[[E:.*]]: i64, %[[X:.*]]: tensor<f32>) -> i64
// CHECK: arith.constant 1 : i64
// CHECK: sheaf.read %[[X]]
// CHECK-LABEL: func.func @items
// CHECK: sheaf.map
// CHECK: call @items.map(%{{.*}}, %{{.*}}) {sheaf.fork}
func.func @items(%xs: !sheaf.list<i64>, %x: tensor<f32>) -> !sheaf.list<i64> {
  %one = arith.constant 1 : i64
  %r = sheaf.map %xs : (!sheaf.list<i64>) -> !sheaf.list<i64> {
  ^bb0(%e: i64):
    %s = sheaf.read %x : (tensor<f32>) -> f64
    %i = sheaf.convert %s : f64 to i64
    %j = arith.addi %i, %one : i64
    %k = arith.addi %j, %e : i64
    sheaf.yield %k : i64
  }
  return %r : !sheaf.list<i64>
}
