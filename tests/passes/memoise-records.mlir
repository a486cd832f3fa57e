// RUN: sheaf-opt --sheaf-pipeline="entry=main remarks=1" %s 2>&1 | FileCheck %s
// RUN: sheaf-opt --sheaf-pipeline="entry=main without=memoise-records" %s | FileCheck %s --check-prefix=OFF
// OFF-NOT: sheaf.once

// A tree whose leaves are words or vectors of the instance's own: what is made of words may be met
// again, and so may what stands above them; what depends on a vector may not.

sheaf.param @table : tensor<50x4xf32> init("normal", [1.0])
sheaf.param @w : tensor<4x4xf32> init("glorot", [])
sheaf.data @Words [#sheaf.ctor<"Leaf", ["word"], [!sheaf.token<"">]>, #sheaf.ctor<"Node", ["l", "r"], [!sheaf.data<@Words>, !sheaf.data<@Words>]>]
sheaf.data @Vectors [#sheaf.ctor<"Leaf", ["v"], [tensor<4xf32>]>, #sheaf.ctor<"Node", ["l", "r"], [!sheaf.data<@Vectors>, !sheaf.data<@Vectors>]>]

// CHECK-DAG: remark: equal records of words.{{[0-9]+}} run once
// CHECK-DAG: remark: vectors.{{[0-9]+}} depends on floats of the instance: its records are not compared

// CHECK-LABEL: func.func private @words
// CHECK: sheaf.record @{{.*}} weights [@w] {sheaf.once{{.*}}}
// CHECK: sheaf.record @{{.*}} {sheaf.once{{.*}}}
func.func @words(%t: !sheaf.data<@Words>) -> tensor<4xf32> {
  %r = sheaf.match %t [0, 1] : (!sheaf.data<@Words>) -> tensor<4xf32> {
  ^bb0(%word: !sheaf.token<"">):
    %i = sheaf.convert %word : !sheaf.token<""> to i64
    %e = sheaf.param_ref @table : tensor<50x4xf32>
    %w = sheaf.param_ref @w : tensor<4x4xf32>
    %x = sheaf.apply "index"(%e, %i) {} : (tensor<50x4xf32>, i64) -> tensor<4xf32>
    %y = sheaf.apply "matmul"(%x, %w) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
    sheaf.yield %y : tensor<4xf32>
  }, {
  ^bb0(%l: !sheaf.data<@Words>, %r: !sheaf.data<@Words>):
    %a = func.call @words(%l) : (!sheaf.data<@Words>) -> tensor<4xf32>
    %b = func.call @words(%r) : (!sheaf.data<@Words>) -> tensor<4xf32>
    %s = sheaf.apply "add"(%a, %b) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func private @vectors
// CHECK-NOT: sheaf.once
// CHECK-LABEL: func.func @main
func.func @vectors(%t: !sheaf.data<@Vectors>) -> tensor<4xf32> {
  %r = sheaf.match %t [0, 1] : (!sheaf.data<@Vectors>) -> tensor<4xf32> {
  ^bb0(%v: tensor<4xf32>):
    %y = sheaf.apply "tanh"(%v) {} : (tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %y : tensor<4xf32>
  }, {
  ^bb0(%l: !sheaf.data<@Vectors>, %r: !sheaf.data<@Vectors>):
    %a = func.call @vectors(%l) : (!sheaf.data<@Vectors>) -> tensor<4xf32>
    %b = func.call @vectors(%r) : (!sheaf.data<@Vectors>) -> tensor<4xf32>
    %s = sheaf.apply "mul"(%a, %b) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// The loop over words stays apart from what the instance brings: the product of both is fresh.
// CHECK: sheaf.fold
// CHECK: sheaf.record @{{.*}} {sheaf.once{{.*}}}
// CHECK: sheaf.map
// CHECK: sheaf.record
// CHECK-NOT: sheaf.once
func.func @main(%t: !sheaf.data<@Words>, %u: !sheaf.data<@Vectors>, %ns: !sheaf.list<i64>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, !sheaf.list<tensor<4xf32>>) {
  %a = func.call @words(%t) : (!sheaf.data<@Words>) -> tensor<4xf32>
  %b = func.call @vectors(%u) : (!sheaf.data<@Vectors>) -> tensor<4xf32>
  %c = sheaf.fold %a, %ns : (tensor<4xf32>, !sheaf.list<i64>) -> tensor<4xf32> {
  ^bb0(%acc: tensor<4xf32>, %n: i64):
    %s = sheaf.apply "tanh"(%acc) {} : (tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %s : tensor<4xf32>
  }
  %d = sheaf.map %ns : (!sheaf.list<i64>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%n: i64):
    %e = sheaf.param_ref @table : tensor<50x4xf32>
    %r = sheaf.apply "index"(%e, %n) {} : (tensor<50x4xf32>, i64) -> tensor<4xf32>
    %s = sheaf.apply "mul"(%r, %x) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %s : tensor<4xf32>
  }
  return %a, %b, %c, %d : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, !sheaf.list<tensor<4xf32>>
}
