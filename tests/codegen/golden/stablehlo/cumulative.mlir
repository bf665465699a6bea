// cumsum(v), cumprod(n)
module @tenon {
  func.func public @main(%arg0: tensor<8xf32>, %arg1: tensor<4xi32>) -> (tensor<8xf32>, tensor<4xi64>) {
    %2 = stablehlo.convert %arg0 : (tensor<8xf32>) -> tensor<8xf64>
    %3 = stablehlo.constant dense<0x0000000000000000> : tensor<f64>
    %4 = stablehlo.slice %2 [0:7:1] : (tensor<8xf64>) -> tensor<7xf64>
    %5 = stablehlo.pad %4, %3, low = [1], high = [0], interior = [0] : (tensor<7xf64>, tensor<f64>) -> tensor<8xf64>
    %6 = stablehlo.add %2, %5 : tensor<8xf64>
    %7 = stablehlo.slice %6 [0:6:1] : (tensor<8xf64>) -> tensor<6xf64>
    %8 = stablehlo.pad %7, %3, low = [2], high = [0], interior = [0] : (tensor<6xf64>, tensor<f64>) -> tensor<8xf64>
    %9 = stablehlo.add %6, %8 : tensor<8xf64>
    %10 = stablehlo.slice %9 [0:4:1] : (tensor<8xf64>) -> tensor<4xf64>
    %11 = stablehlo.pad %10, %3, low = [4], high = [0], interior = [0] : (tensor<4xf64>, tensor<f64>) -> tensor<8xf64>
    %12 = stablehlo.add %9, %11 : tensor<8xf64>
    %13 = stablehlo.convert %12 : (tensor<8xf64>) -> tensor<8xf32>
    %14 = stablehlo.convert %arg1 : (tensor<4xi32>) -> tensor<4xi64>
    %15 = stablehlo.constant dense<1> : tensor<i64>
    %16 = stablehlo.slice %14 [0:3:1] : (tensor<4xi64>) -> tensor<3xi64>
    %17 = stablehlo.pad %16, %15, low = [1], high = [0], interior = [0] : (tensor<3xi64>, tensor<i64>) -> tensor<4xi64>
    %18 = stablehlo.multiply %14, %17 : tensor<4xi64>
    %19 = stablehlo.slice %18 [0:2:1] : (tensor<4xi64>) -> tensor<2xi64>
    %20 = stablehlo.pad %19, %15, low = [2], high = [0], interior = [0] : (tensor<2xi64>, tensor<i64>) -> tensor<4xi64>
    %21 = stablehlo.multiply %18, %20 : tensor<4xi64>
    "func.return"(%13, %21) : (tensor<8xf32>, tensor<4xi64>) -> ()
  }
}
